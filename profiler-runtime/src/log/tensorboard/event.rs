//! The three nested protobuf messages of a scalar: `Event { Summary { Value } }`.
//!
//! Scalars need seven fields of `TensorFlow`'s `event.proto` and `summary.proto`: fewer lines than
//! it takes to set up a code generator.

/// A field's key: its number in the message and how it is encoded.
const fn key(number: u8, wire: u8) -> u8 {
    number << 3 | wire
}

const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const BYTES: u8 = 2;
const FIXED_32: u8 = 5;

const EVENT_WALL_TIME: u8 = key(1, FIXED_64);
const EVENT_STEP: u8 = key(2, VARINT);
const EVENT_FILE_VERSION: u8 = key(3, BYTES);
const EVENT_SUMMARY: u8 = key(5, BYTES);
const SUMMARY_VALUE: u8 = key(1, BYTES);
const VALUE_TAG: u8 = key(1, BYTES);
const VALUE_SIMPLE_VALUE: u8 = key(2, FIXED_32);

/// Appends the event every file begins with.
pub(super) fn append_file_version(out: &mut Vec<u8>, wall_time: f64) {
    append_wall_time(out, wall_time);
    append_bytes(out, EVENT_FILE_VERSION, b"brain.Event:2");
}

/// Appends an event that holds the values of one step; `summary` comes from [`append_value`].
pub(super) fn append_event(out: &mut Vec<u8>, wall_time: f64, step: i64, summary: &[u8]) {
    append_wall_time(out, wall_time);
    if step != 0 {
        out.push(EVENT_STEP);
        append_varint(out, step.cast_unsigned());
    }
    append_bytes(out, EVENT_SUMMARY, summary);
}

/// Appends one more value to the summary of an event.
pub(super) fn append_value(summary: &mut Vec<u8>, tag: &str, value: f32) {
    let tag_field = 1 + varint_len(tag.len() as u64) + tag.len();
    let value_field = 1 + size_of::<f32>();
    summary.push(SUMMARY_VALUE);
    append_varint(summary, (tag_field + value_field) as u64);
    append_bytes(summary, VALUE_TAG, tag.as_bytes());
    summary.push(VALUE_SIMPLE_VALUE);
    summary.extend_from_slice(&value.to_le_bytes());
}

fn append_wall_time(out: &mut Vec<u8>, wall_time: f64) {
    out.push(EVENT_WALL_TIME);
    out.extend_from_slice(&wall_time.to_le_bytes());
}

fn append_bytes(out: &mut Vec<u8>, key: u8, bytes: &[u8]) {
    out.push(key);
    append_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends seven bits a byte, the lowest first; the top bit says that more follow.
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
    use super::{append_event, append_value, append_varint, varint_len};

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
        append_value(&mut summary, "loss", 0.5);
        let mut event = Vec::new();
        append_event(&mut event, 1.0, 300, &summary);
        // `Event.SerializeToString()` of TensorBoard's Python package.
        assert_eq!(
            event,
            b"\x09\0\0\0\0\0\0\xf0\x3f\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f"
        );
    }
}
