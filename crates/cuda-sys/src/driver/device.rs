//! The properties of a device that decide how many blocks of a kernel run on it at once.

use std::ffi::c_int;

/// The properties of a device. A property that the driver does not know is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceProperties {
    /// The memory of the device, in bytes.
    pub total_bytes: u64,
    /// The compute capability, major and minor.
    pub compute: (u32, u32),
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The threads of a warp.
    pub warp_size: u32,
    /// The most threads of a block.
    pub threads_of_block: u32,
    /// The most threads on a multiprocessor at once.
    pub threads_of_multiprocessor: u32,
    /// The most blocks on a multiprocessor at once.
    pub blocks_of_multiprocessor: u32,
    /// The most registers of 32 bits for a block.
    pub registers_of_block: u32,
    /// The registers of 32 bits of a multiprocessor.
    pub registers_of_multiprocessor: u32,
    /// The most shared memory of a block that does not ask for more, in bytes.
    pub shared_bytes_of_block: u32,
    /// The shared memory of a block if the program asks for more than it gets by default, in bytes.
    pub most_shared_bytes_of_block: u32,
    /// The shared memory of a multiprocessor, in bytes.
    pub shared_bytes_of_multiprocessor: u32,
    /// The shared memory that the driver keeps of each block, in bytes.
    pub reserved_shared_bytes_of_block: u32,
}

impl DeviceProperties {
    /// Reads all properties; `attribute` returns the value of a `CUdevice_attribute` of `cuda.h`.
    pub fn read(total_bytes: u64, attribute: impl Fn(c_int) -> Option<c_int>) -> Self {
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
