//! Messages of Protocol Buffers, as far as formats of other tools need them.

/// A message being written, field by field. Fields may come in any order, and fields of the same number repeat.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

/// How the value of a field is encoded.
#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    LengthDelimited = 2,
}

impl Message {
    /// Writes an unsigned integer, an enumerator or a boolean.
    pub(super) fn unsigned(&mut self, field: u32, value: u64) {
        self.key(field, WireType::Varint);
        varint(&mut self.bytes, value);
    }

    /// Writes an `int64`, not a `sint64`.
    pub(super) fn signed(&mut self, field: u32, value: i64) {
        self.unsigned(field, value.cast_unsigned());
    }

    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.delimited(field, text.as_bytes());
    }

    pub(super) fn message(&mut self, field: u32, message: &Self) {
        self.delimited(field, &message.bytes);
    }

    /// Writes a `fixed64`.
    pub(super) fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, WireType::Fixed64);
        self.bytes.extend(value.to_le_bytes());
    }

    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// Writes a repeated `uint64` or `int64` in one field.
    pub(super) fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut bytes = Vec::new();
        for value in values {
            varint(&mut bytes, value);
        }
        self.delimited(field, &bytes);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all fields, and keeps the memory for other ones.
    pub(super) fn clear(&mut self) {
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
        assert_eq!(message.into_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.packed(6, [3, 270, 86_942]);
        assert_eq!(
            message.into_bytes(),
            [0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05]
        );
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
