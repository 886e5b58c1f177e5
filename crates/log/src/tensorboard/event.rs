//! Values as nested protobuf messages: `Event { Summary { Value } }`.
//!
//! Scalars need seven fields of `TensorFlow`'s `event.proto` and `summary.proto`, histograms and texts some fifteen
//! more. Writing them here takes fewer lines than setting up a code generator.

use profiler_report::internal::Message;

use super::histogram::BucketedValues;

const EVENT_WALL_TIME: u32 = 1;
const EVENT_STEP: u32 = 2;
const EVENT_FILE_VERSION: u32 = 3;
const EVENT_SUMMARY: u32 = 5;
const SUMMARY_VALUE: u32 = 1;
const VALUE_TAG: u32 = 1;
const VALUE_SIMPLE_VALUE: u32 = 2;
const VALUE_HISTO: u32 = 5;
const VALUE_TENSOR: u32 = 8;
const VALUE_METADATA: u32 = 9;
const TENSOR_DTYPE: u32 = 1;
const TENSOR_SHAPE: u32 = 2;
const TENSOR_STRING_VAL: u32 = 8;
const METADATA_PLUGIN_DATA: u32 = 1;
const METADATA_DATA_CLASS: u32 = 4;
const PLUGIN_DATA_NAME: u32 = 1;

const DT_STRING: u64 = 7;
const DATA_CLASS_TENSOR: u64 = 2;

/// Appends the event that every file begins with.
pub(super) fn append_file_version(out: &mut Message, wall_time: f64) {
    out.double(EVENT_WALL_TIME, wall_time);
    out.text(EVENT_FILE_VERSION, "brain.Event:2");
}

/// Appends an event that holds the values of one step. `summary` consists of what the functions below append.
pub(super) fn append_event(out: &mut Message, wall_time: f64, step: i64, summary: &Message) {
    out.double(EVENT_WALL_TIME, wall_time);
    if step != 0 {
        out.signed(EVENT_STEP, step);
    }
    out.message(EVENT_SUMMARY, summary);
}

/// Appends a scalar to the summary of an event.
pub(super) fn append_scalar(summary: &mut Message, tag: &str, value: f64) {
    // TensorBoard's data server hides 64-bit scalars. Seven digits are enough for a duration.
    #[expect(clippy::cast_possible_truncation)]
    let value = value as f32;
    append_value(summary, tag, |message| {
        message.float(VALUE_SIMPLE_VALUE, value);
    });
}

/// Appends a histogram to the summary of an event.
pub(super) fn append_histogram(summary: &mut Message, tag: &str, histogram: &BucketedValues) {
    append_value(summary, tag, |value| {
        value.nested(VALUE_HISTO, |message| histogram.append_to(message));
    });
}

/// Appends a text in Markdown to the summary of an event.
pub(super) fn append_text(summary: &mut Message, tag: &str, text: &str) {
    append_value(summary, tag, |value| {
        value.nested(VALUE_TENSOR, |tensor| {
            tensor.unsigned(TENSOR_DTYPE, DT_STRING);
            // A shape without dimensions: a single string.
            tensor.nested(TENSOR_SHAPE, |_| ());
            tensor.text(TENSOR_STRING_VAL, text);
        });
        value.nested(VALUE_METADATA, |metadata| {
            metadata.nested(METADATA_PLUGIN_DATA, |data| {
                data.text(PLUGIN_DATA_NAME, "text");
            });
            metadata.unsigned(METADATA_DATA_CLASS, DATA_CLASS_TENSOR);
        });
    });
}

fn append_value(summary: &mut Message, tag: &str, write: impl FnOnce(&mut Message)) {
    summary.nested(SUMMARY_VALUE, |value| {
        value.text(VALUE_TAG, tag);
        write(value);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_equals_the_one_protobuf_writes() {
        let mut summary = Message::default();
        append_scalar(&mut summary, "loss", 0.5);
        let mut event = Message::default();
        append_event(&mut event, 1.0, 300, &summary);
        // `Event.SerializeToString()` of TensorBoard's Python package.
        assert_eq!(
            event.bytes(),
            b"\x09\0\0\0\0\0\0\xf0\x3f\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f"
        );
    }

    #[test]
    fn a_text_equals_the_one_protobuf_writes() {
        let mut summary = Message::default();
        append_text(&mut summary, "t", "**a**");
        // `Summary.SerializeToString()` of TensorBoard's Python package.
        assert_eq!(
            summary.bytes(),
            b"\x0a\x1c\x0a\x01tB\x0b\x08\x07\x12\0B\x05**a**J\x0a\x0a\x06\x0a\x04text\x20\x02"
        );
    }
}
