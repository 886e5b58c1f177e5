//! The properties of a device that decide how many blocks of a kernel run on it at once.

use std::ffi::c_int;

/// The properties of a device. A property that the driver does not know is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceProperties {
    pub(crate) total_bytes: u64,
    /// The compute capability, major and minor.
    pub(crate) compute: (u32, u32),
    pub(crate) multiprocessors: u32,
    pub(crate) warp_size: u32,
    pub(crate) threads_of_block: u32,
    pub(crate) threads_of_multiprocessor: u32,
    pub(crate) blocks_of_multiprocessor: u32,
    pub(crate) registers_of_block: u32,
    pub(crate) registers_of_multiprocessor: u32,
    pub(crate) shared_bytes_of_block: u32,
    /// The shared memory of a block if the program asks for more than it gets by default.
    pub(crate) most_shared_bytes_of_block: u32,
    pub(crate) shared_bytes_of_multiprocessor: u32,
    /// The shared memory that the driver keeps of each block.
    pub(crate) reserved_shared_bytes_of_block: u32,
}

impl DeviceProperties {
    /// Reads all properties; `attribute` returns the value of a `CUdevice_attribute` of `cuda.h`.
    pub(crate) fn read(total_bytes: u64, attribute: impl Fn(c_int) -> Option<c_int>) -> Self {
        let count = |number| attribute(number).and_then(|value| u32::try_from(value).ok());
        let count = |number| count(number).unwrap_or_default();
        Self {
            total_bytes,
            compute: (count(75), count(76)),
            multiprocessors: count(16),
            warp_size: count(10),
            threads_of_block: count(1),
            threads_of_multiprocessor: count(39),
            blocks_of_multiprocessor: count(106),
            registers_of_block: count(12),
            registers_of_multiprocessor: count(82),
            shared_bytes_of_block: count(8),
            most_shared_bytes_of_block: count(97),
            shared_bytes_of_multiprocessor: count(81),
            reserved_shared_bytes_of_block: count(111),
        }
    }
}
