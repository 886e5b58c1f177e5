//! Messages of Protocol Buffers, as far as formats of other tools need them.

/// A message being written, field by field. Fields may come in any order, and fields of the same number repeat.
#[derive(Clone, Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
}

/// How the value of a field is encoded.
#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    LengthDelimited = 2,
    Fixed32 = 5,
}

impl Message {
    /// Writes an unsigned integer, an enumerator or a boolean.
    pub fn unsigned(&mut self, field: u32, value: u64) {
        self.key(field, WireType::Varint);
        varint(&mut self.bytes, value);
    }

    /// Writes an `int64`, not a `sint64`.
    pub fn signed(&mut self, field: u32, value: i64) {
        self.unsigned(field, value.cast_unsigned());
    }

    /// Adds a string.
    pub fn text(&mut self, field: u32, text: &str) {
        self.delimited(field, text.as_bytes());
    }

    /// Adds a message.
    pub fn message(&mut self, field: u32, message: &Self) {
        self.delimited(field, &message.bytes);
    }

    /// Writes a message whose fields `write` adds. The message needs no memory of its own.
    pub fn nested(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.key(field, WireType::LengthDelimited);
        let start = self.bytes.len();
        // Enough for the length of a short message.
        self.bytes.push(0);
        write(self);
        let length = self.bytes.len() - start - 1;
        if length < 0x80 {
            self.bytes[start] = length.to_le_bytes()[0];
        } else {
            let end = self.bytes.len();
            varint(&mut self.bytes, length as u64);
            let moved = self.bytes.len() - end;
            self.bytes[start..].rotate_right(moved);
            self.bytes.remove(start + moved);
        }
    }

    /// Writes a `fixed64`.
    pub fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, WireType::Fixed64);
        self.bytes.extend(value.to_le_bytes());
    }

    /// Adds a `double`.
    pub fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// Adds a `float`.
    pub fn float(&mut self, field: u32, value: f32) {
        self.key(field, WireType::Fixed32);
        self.bytes.extend(value.to_le_bytes());
    }

    /// Writes a repeated `uint64` or `int64` in one field.
    pub fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        self.nested(field, |packed| {
            for value in values {
                varint(&mut packed.bytes, value);
            }
        });
    }

    /// Writes a repeated `double` in one field.
    pub fn packed_doubles(&mut self, field: u32, values: impl IntoIterator<Item = f64>) {
        self.nested(field, |packed| {
            packed
                .bytes
                .extend(values.into_iter().flat_map(f64::to_le_bytes));
        });
    }

    /// Returns the bytes of the message.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all fields, and keeps the memory for other ones.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    fn delimited(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, WireType::LengthDelimited);
        varint(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn key(&mut self, field: u32, kind: WireType) {
        varint(&mut self.bytes, u64::from(field) << 3 | kind as u64);
    }
}

/// Writes seven bits at a time, the lowest first; the eighth bit says that more follow.
fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the specification.
    #[test]
    fn fields_are_encoded_as_specified() {
        let mut inner = Message::default();
        inner.unsigned(1, 150);
        assert_eq!(inner.bytes, [0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.text(2, "testing");
        assert_eq!(message.bytes, *b"\x12\x07testing");
        let mut message = Message::default();
        message.message(3, &inner);
        assert_eq!(message.bytes, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.packed(6, [3, 270, 86_942]);
        assert_eq!(
            message.bytes,
            [0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05]
        );
    }

    #[test]
    fn a_nested_message_equals_one_that_was_written_apart() {
        for length in [0, 1, 120, 125, 126, 127, 128, 16_000, 16_383, 16_384] {
            let text = "a".repeat(length);
            let mut apart = Message::default();
            apart.text(1, &text);
            let mut expected = Message::default();
            expected.unsigned(2, 7);
            expected.message(3, &apart);
            let mut message = Message::default();
            message.unsigned(2, 7);
            message.nested(3, |nested| nested.text(1, &text));
            assert_eq!(message.bytes, expected.bytes, "{length}");
        }
    }

    #[test]
    fn negative_numbers_take_ten_bytes() {
        let mut message = Message::default();
        message.signed(1, -2);
        let all_ones = [0xff; 8];
        assert_eq!(message.bytes[..2], [0x08, 0xfe]);
        assert_eq!(message.bytes[2..10], all_ones);
        assert_eq!(message.bytes[10..], [0x01]);
    }
}
