//! The kinds of records that are asked for: a `CUpti_ActivityKind` each.

use crate::declare::constants;

constants! {
    /// Copies.
    pub const MEMCPY: u32 = CUPTI_ACTIVITY_KIND_MEMCPY(1);
    /// Fills.
    pub const MEMSET: u32 = CUPTI_ACTIVITY_KIND_MEMSET(2);
    /// Kernels, without making them wait for each other.
    pub const CONCURRENT_KERNEL: u32 = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(10);
    /// Copies between devices.
    pub const MEMCPY_PEER: u32 = CUPTI_ACTIVITY_KIND_MEMCPY2(22);
    /// Waits of the host for a stream, a context or an event.
    pub const SYNCHRONIZATION: u32 = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(38);
    /// Kernels one at a time. Never asked for, and read if another client has.
    pub const KERNEL: u32 = CUPTI_ACTIVITY_KIND_KERNEL(3);
}
