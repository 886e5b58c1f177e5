//! The memory in use on a device.

use profiler_cuda_sys::driver::{Driver, PoolCounter, RawContext};

use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::library;
use crate::cuda::thread::state;

/// Memory of the current context's device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceMemory {
    /// Memory in use by all programs, without the unused part of this program's default memory pool.
    pub(crate) used: u64,
    /// Memory taken from the device, including the unused part of the pool.
    pub(crate) reserved: u64,
}

/// Returns the memory of the current context's device, or `None` if no context is current or the driver cannot say.
pub(crate) fn device_memory() -> Option<DeviceMemory> {
    let driver = library::driver().filter(|_| !state::is_backing_off())?;
    let is_current = driver
        .current_context()
        .is_ok_and(|context| context != RawContext::NONE);
    is_current
        .then(|| driver.relaxed(|| query(driver)))
        .flatten()
}

fn query(driver: &Driver) -> Option<DeviceMemory> {
    let (free, total) = driver.memory_info()?;
    let reserved = total.saturating_sub(free) as u64;
    let device = driver.current_device()?;
    let counter = |counter| driver.pool_counter(device, counter).unwrap_or_default();
    let idle = counter(PoolCounter::RESERVED).saturating_sub(counter(PoolCounter::USED));
    Some(DeviceMemory {
        used: reserved.saturating_sub(idle),
        reserved,
    })
}
