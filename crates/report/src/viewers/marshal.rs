//! Python's marshal format, as far as profiles need it: version 0, which every Python reads.

/// The bits of a digit of a long integer.
const DIGIT_BITS: u32 = 15;

/// A value being written. Containers take the values that are written inside them.
#[derive(Clone, Debug, Default)]
pub(super) struct Marshal {
    bytes: Vec<u8>,
}

impl Marshal {
    /// Writes a dictionary: `write` writes keys and values in turn.
    pub(super) fn dict(&mut self, write: impl FnOnce(&mut Self)) {
        self.bytes.push(b'{');
        write(self);
        self.bytes.push(b'0');
    }

    /// Begins a tuple. The next `length` values are its items.
    pub(super) fn tuple(&mut self, length: i32) {
        self.bytes.push(b'(');
        self.bytes.extend(length.to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes.push(b'u');
        // No name is as long as 2 GiB.
        let length = i32::try_from(text.len()).unwrap_or(i32::MAX);
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(text.as_bytes());
    }

    pub(super) fn integer(&mut self, value: u64) {
        if let Ok(value) = i32::try_from(value) {
            self.bytes.push(b'i');
            self.bytes.extend(value.to_le_bytes());
            return;
        }
        let digits = (u64::BITS - value.leading_zeros()).div_ceil(DIGIT_BITS);
        self.bytes.push(b'l');
        self.bytes.extend(digits.to_le_bytes());
        for digit in 0..digits {
            let digit = value >> (digit * DIGIT_BITS) & ((1 << DIGIT_BITS) - 1);
            self.bytes.extend(&digit.to_le_bytes()[..2]);
        }
    }

    pub(super) fn float(&mut self, value: f64) {
        self.bytes.push(b'g');
        self.bytes.extend(value.to_le_bytes());
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
