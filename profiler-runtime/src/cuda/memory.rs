//! How much memory of a device is in use.

use crate::cuda::ffi::driver::{Driver, PoolCounter, RawContext};
use crate::cuda::ffi::library;
use crate::cuda::thread::state;

/// Memory of the current context's device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceMemory {
    /// In use by programs, as far as the driver tells: what its default pool keeps for later is not.
    pub(crate) used: u64,
    /// Taken from the device, with what the pool keeps.
    pub(crate) reserved: u64,
}

/// None where no context is current, or the driver does not tell.
pub(crate) fn device_memory() -> Option<DeviceMemory> {
    let driver = library::driver().filter(|_| !state::is_barred())?;
    let is_current = driver
        .current_context()
        .is_ok_and(|context| context != RawContext::NONE);
    is_current.then(|| driver.relaxed(|| ask(driver))).flatten()
}

fn ask(driver: &Driver) -> Option<DeviceMemory> {
    let (free, total) = driver.memory_info()?;
    let reserved = total.saturating_sub(free) as u64;
    let device = driver.current_device()?;
    let counter = |counter| driver.pool_counter(device, counter).unwrap_or_default();
    let idle = counter(PoolCounter::Reserved).saturating_sub(counter(PoolCounter::Used));
    Some(DeviceMemory {
        used: reserved.saturating_sub(idle),
        reserved,
    })
}
