//! Encodes values as nested protobuf messages: `Event { Summary { Value } }`.
//!
//! Scalars need seven fields of `TensorFlow`'s `event.proto` and `summary.proto`, histograms and texts some fifteen
//! more. Encoding them here takes fewer lines than setting up a code generator.

use super::histogram::Histogram;

/// Returns a field's key: its number in the message and its wire type.
pub(super) const fn key(number: u8, wire: u8) -> u8 {
    number << 3 | wire
}

const VARINT: u8 = 0;
pub(super) const FIXED_64: u8 = 1;
pub(super) const BYTES: u8 = 2;
const FIXED_32: u8 = 5;

const EVENT_WALL_TIME: u8 = key(1, FIXED_64);
const EVENT_STEP: u8 = key(2, VARINT);
const EVENT_FILE_VERSION: u8 = key(3, BYTES);
const EVENT_SUMMARY: u8 = key(5, BYTES);
const SUMMARY_VALUE: u8 = key(1, BYTES);
const VALUE_TAG: u8 = key(1, BYTES);
const VALUE_SIMPLE_VALUE: u8 = key(2, FIXED_32);
const VALUE_HISTO: u8 = key(5, BYTES);
const VALUE_TENSOR: u8 = key(8, BYTES);
const VALUE_METADATA: u8 = key(9, BYTES);

/// `TensorProto` of a single string: the type, and the shape without dimensions. The string follows.
const STRING_TENSOR: [u8; 4] = [key(1, VARINT), DT_STRING, key(2, BYTES), 0];
const STRING_TENSOR_VALUE: u8 = key(8, BYTES);
const DT_STRING: u8 = 7;

/// `SummaryMetadata { PluginData { plugin_name: "text" }, data_class: TENSOR }`.
const TEXT_METADATA: [u8; 10] = [
    key(1, BYTES),
    6,
    key(1, BYTES),
    4,
    b't',
    b'e',
    b'x',
    b't',
    key(4, VARINT),
    CLASS_TENSOR,
];
const CLASS_TENSOR: u8 = 2;

/// Appends the event that every file begins with.
pub(super) fn append_file_version(out: &mut Vec<u8>, wall_time: f64) {
    append_wall_time(out, wall_time);
    append_bytes(out, EVENT_FILE_VERSION, b"brain.Event:2");
}

/// Appends an event that holds the values of one step. `summary` consists of what the functions below append.
pub(super) fn append_event(out: &mut Vec<u8>, wall_time: f64, step: i64, summary: &[u8]) {
    append_wall_time(out, wall_time);
    if step != 0 {
        out.push(EVENT_STEP);
        append_varint(out, step.cast_unsigned());
    }
    append_bytes(out, EVENT_SUMMARY, summary);
}

/// Appends a scalar to the summary of an event.
pub(super) fn append_scalar(summary: &mut Vec<u8>, tag: &str, value: f64) {
    // TensorBoard's data server hides 64-bit scalars. Seven digits are enough for a duration.
    #[expect(clippy::cast_possible_truncation)]
    let value = value as f32;
    // The lengths are known in advance, so that no message is built apart: this is the common case.
    let tag_field = 1 + varint_len(tag.len() as u64) + tag.len();
    let value_field = 1 + size_of::<f32>();
    summary.push(SUMMARY_VALUE);
    append_varint(summary, (tag_field + value_field) as u64);
    append_bytes(summary, VALUE_TAG, tag.as_bytes());
    summary.push(VALUE_SIMPLE_VALUE);
    summary.extend_from_slice(&value.to_le_bytes());
}

/// Appends a histogram to the summary of an event.
pub(super) fn append_histogram(summary: &mut Vec<u8>, tag: &str, histogram: &Histogram) {
    let mut message = Vec::new();
    histogram.append_to(&mut message);
    append_message(summary, tag, &[(VALUE_HISTO, &message)]);
}

/// Appends a text in Markdown to the summary of an event.
pub(super) fn append_text(summary: &mut Vec<u8>, tag: &str, text: &str) {
    let mut tensor = STRING_TENSOR.to_vec();
    append_bytes(&mut tensor, STRING_TENSOR_VALUE, text.as_bytes());
    let fields = [(VALUE_TENSOR, &*tensor), (VALUE_METADATA, &TEXT_METADATA)];
    append_message(summary, tag, &fields);
}

/// Appends a value that consists of messages.
fn append_message(summary: &mut Vec<u8>, tag: &str, fields: &[(u8, &[u8])]) {
    let mut value = Vec::new();
    append_bytes(&mut value, VALUE_TAG, tag.as_bytes());
    for (key, message) in fields {
        append_bytes(&mut value, *key, message);
    }
    append_bytes(summary, SUMMARY_VALUE, &value);
}

fn append_wall_time(out: &mut Vec<u8>, wall_time: f64) {
    out.push(EVENT_WALL_TIME);
    out.extend_from_slice(&wall_time.to_le_bytes());
}

pub(super) fn append_bytes(out: &mut Vec<u8>, key: u8, bytes: &[u8]) {
    out.push(key);
    append_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends seven bits per byte, the lowest first. The top bit is set if more bytes follow.
fn append_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn varint_len(number: u64) -> usize {
    let bits = u64::BITS - (number | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::{append_event, append_scalar, append_text, append_varint, varint_len};

    #[test]
    fn the_length_of_a_number_is_foreseen() {
        let edges = (0..64)
            .flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit])
            .chain([u64::MAX]);
        for number in edges {
            let mut out = Vec::new();
            append_varint(&mut out, number);
            assert_eq!(out.len(), varint_len(number), "{number}");
        }
    }

    #[test]
    fn an_event_equals_the_one_protobuf_writes() {
        let mut summary = Vec::new();
        append_scalar(&mut summary, "loss", 0.5);
        let mut event = Vec::new();
        append_event(&mut event, 1.0, 300, &summary);
        // `Event.SerializeToString()` of TensorBoard's Python package.
        assert_eq!(
            event,
            b"\x09\0\0\0\0\0\0\xf0\x3f\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f"
        );
    }

    #[test]
    fn a_text_equals_the_one_protobuf_writes() {
        let mut summary = Vec::new();
        append_text(&mut summary, "t", "**a**");
        // `Summary.SerializeToString()` of TensorBoard's Python package.
        assert_eq!(
            summary,
            b"\x0a\x1c\x0a\x01tB\x0b\x08\x07\x12\0B\x05**a**J\x0a\x0a\x06\x0a\x04text\x20\x02"
        );
    }
}
