//! The layout of records in a buffer, by version of CUPTI, on a 64-bit machine.
//!
//! No version moved a field: each only appended some, or used what was padding.

use super::ids::kind;

/// The first version of CUDA 12.4, 12.8, 13.0 and 13.5.
pub(super) const CUDA_12_4: u32 = 22;
const CUDA_12_8: u32 = 26;
const CUDA_13_0: u32 = 130_001;
const CUDA_13_5: u32 = 130_500;

/// The size of the largest record.
pub(super) const LARGEST: usize = 248;

/// The size of a record of a kind that no version has, which no version can tell.
pub(super) const UNKNOWN_SIZE: usize = 64;

/// Returns the size of a record, or `None` for a kind that this library cannot read.
///
/// CUDA 11.8 and 12.0 are both version 18, and the script tells which one is meant.
pub(super) fn size(kind: u32, version: u32, is_11_8: bool) -> Option<usize> {
    let newest = |sizes: &[(u32, usize)]| {
        let reached = sizes.iter().rev().find(|(since, _)| version >= *since);
        reached.map(|(_, size)| *size)
    };
    match kind {
        kind::KERNEL | kind::CONCURRENT_KERNEL if is_11_8 => Some(200),
        kind::KERNEL | kind::CONCURRENT_KERNEL => {
            newest(&[(0, 208), (CUDA_13_0, 216), (CUDA_13_5, LARGEST)])
        }
        kind::MEMCPY => newest(&[(0, 88), (CUDA_12_8, 96), (CUDA_13_5, 112)]),
        kind::MEMCPY2 => Some(96),
        kind::MEMSET => newest(&[(0, 88), (CUDA_13_5, 104)]),
        kind::SYNCHRONIZATION => newest(&[(0, 40), (CUDA_12_8, 56)]),
        kind::OVERHEAD => newest(&[(0, 40), (CUDA_12_4, 56)]),
        _ => None,
    }
}

/// A record that is being written.
#[derive(Debug)]
pub(super) struct Fields {
    bytes: [u8; LARGEST],
    size: usize,
}

impl Fields {
    pub(super) fn new(kind: u32, size: usize) -> Self {
        let mut fields = Self {
            bytes: [0; LARGEST],
            size,
        };
        fields.word(0, kind);
        fields
    }

    fn put(&mut self, at: usize, value: &[u8]) {
        // A field that this version does not have is left out.
        if at + value.len() <= self.size {
            self.bytes[at..at + value.len()].copy_from_slice(value);
        }
    }

    pub(super) fn byte(&mut self, at: usize, value: u8) {
        self.put(at, &[value]);
    }

    pub(super) fn half(&mut self, at: usize, value: u16) {
        self.put(at, &value.to_ne_bytes());
    }

    pub(super) fn word(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_ne_bytes());
    }

    pub(super) fn words(&mut self, at: usize, values: [u32; 3]) {
        for (index, value) in values.into_iter().enumerate() {
            self.word(at + 4 * index, value);
        }
    }

    pub(super) fn long(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_ne_bytes());
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size]
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::kind;
    use super::{Fields, size};

    #[test]
    fn sizes_follow_the_headers_of_each_version() {
        let kernel = |version, is_11_8| size(kind::CONCURRENT_KERNEL, version, is_11_8);
        let sizes = [
            kernel(18, true),
            kernel(18, false),
            kernel(28, false),
            kernel(130_001, false),
            kernel(130_500, false),
        ];
        assert_eq!(sizes, [200, 208, 208, 216, 248].map(Some));
        assert_eq!(size(kind::MEMCPY, 22, false), Some(88));
        assert_eq!(size(kind::MEMCPY, 26, false), Some(96));
        assert_eq!(size(kind::SYNCHRONIZATION, 22, false), Some(40));
        assert_eq!(size(kind::OVERHEAD, 22, false), Some(56));
        assert_eq!(size(kind::UNKNOWN, 26, false), None);
    }

    #[test]
    fn a_field_that_the_version_lacks_is_left_out() {
        let mut fields = Fields::new(kind::OVERHEAD, 40);
        fields.word(40, 7);
        assert_eq!(fields.bytes().len(), 40);
        assert_eq!(fields.bytes()[0], 17);
    }
}
