//! The properties of a device that decide how many blocks of a kernel run on it at once.

use std::ffi::{c_int, c_uint};

use crate::declare::constants;

constants! {
    const COMPUTE_MAJOR: c_uint = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR(75);
    const COMPUTE_MINOR: c_uint = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR(76);
    const MULTIPROCESSORS: c_uint = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT(16);
    const WARP_SIZE: c_uint = CU_DEVICE_ATTRIBUTE_WARP_SIZE(10);
    const THREADS_OF_BLOCK: c_uint = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK(1);
    const THREADS_OF_MULTIPROCESSOR: c_uint = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR(39);
    const BLOCKS_OF_MULTIPROCESSOR: c_uint = CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR(106);
    const REGISTERS_OF_BLOCK: c_uint = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK(12);
    const REGISTERS_OF_MULTIPROCESSOR: c_uint = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR(82);
    const SHARED_BYTES_OF_BLOCK: c_uint = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK(8);
    const MOST_SHARED_BYTES_OF_BLOCK: c_uint = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN(97);
    const SHARED_BYTES_OF_MULTIPROCESSOR: c_uint = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR(81);
    const RESERVED_SHARED_BYTES_OF_BLOCK: c_uint = CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK(111);
}

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
    /// Returns the numbers of the attributes as they are declared here.
    #[cfg(test)]
    pub(crate) fn attributes() -> Vec<header_check::Item> {
        constants()
    }

    /// Reads all properties; `attribute` returns the value of a `CUdevice_attribute` of `cuda.h`.
    pub fn read(total_bytes: u64, attribute: impl Fn(c_uint) -> Option<c_int>) -> Self {
        let count = |number| attribute(number).and_then(|value| u32::try_from(value).ok());
        let count = |number| count(number).unwrap_or_default();
        Self {
            total_bytes,
            compute: (count(COMPUTE_MAJOR), count(COMPUTE_MINOR)),
            multiprocessors: count(MULTIPROCESSORS),
            warp_size: count(WARP_SIZE),
            threads_of_block: count(THREADS_OF_BLOCK),
            threads_of_multiprocessor: count(THREADS_OF_MULTIPROCESSOR),
            blocks_of_multiprocessor: count(BLOCKS_OF_MULTIPROCESSOR),
            registers_of_block: count(REGISTERS_OF_BLOCK),
            registers_of_multiprocessor: count(REGISTERS_OF_MULTIPROCESSOR),
            shared_bytes_of_block: count(SHARED_BYTES_OF_BLOCK),
            most_shared_bytes_of_block: count(MOST_SHARED_BYTES_OF_BLOCK),
            shared_bytes_of_multiprocessor: count(SHARED_BYTES_OF_MULTIPROCESSOR),
            reserved_shared_bytes_of_block: count(RESERVED_SHARED_BYTES_OF_BLOCK),
        }
    }
}
