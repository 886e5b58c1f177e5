//! The CUDA driver, called through functions that are found by name at run time.
//!
//! One binary works with every driver from CUDA 11 on, and without any. The profiler does not share a binding's context
//! object: that would take errors of the program's own calls away from it.

mod code;
mod device;
mod handle;
mod table;

use std::ffi::{CStr, c_int, c_uint, c_void};
#[cfg(all(feature = "load", not(target_family = "wasm")))]
use std::path::Path;
use std::ptr;

pub use self::code::{Code, Failed, Fault};
pub use self::device::DeviceProperties;
pub use self::handle::{CaptureMode, CaptureStatus, Event, RawContext, RawStream};
pub use self::table::Table;
use crate::declare::constants;
#[cfg(all(feature = "load", not(target_family = "wasm")))]
use crate::library::{Library, OpenError};

/// The library's names. `libcuda.so` comes last, since it may be a stub that only serves linking.
#[cfg(unix)]
pub const LIBRARY_NAMES: [&CStr; 2] = [c"libcuda.so.1", c"libcuda.so"];
/// The library's name.
#[cfg(not(unix))]
pub const LIBRARY_NAMES: [&CStr; 1] = [c"nvcuda.dll"];

/// Returns the library at `path`, or the system's. Without `load`, returns the system's only if the process has loaded it
/// already.
///
/// # Errors
///
/// Returns [`OpenError::NotLoaded`] only without `load`.
///
/// # Safety
///
/// As for [`Library::load`].
#[cfg(all(feature = "load", not(target_family = "wasm")))]
pub unsafe fn open(path: Option<&Path>, load: bool) -> Result<Library, OpenError> {
    if let Some(path) = path {
        // SAFETY: as the caller promises.
        return unsafe { Library::load(path) }.map_err(|reason| {
            OpenError::Failed(format!("{} cannot be loaded: {reason}", path.display()))
        });
    }
    if let Some(library) = LIBRARY_NAMES.iter().find_map(|name| Library::loaded(name)) {
        return Ok(library);
    }
    if !load {
        return Err(OpenError::NotLoaded);
    }
    let mut reasons = Vec::new();
    for name in LIBRARY_NAMES {
        // SAFETY: as the caller promises.
        match unsafe { Library::load(Path::new(name.to_str().unwrap_or_default())) } {
            Ok(library) => return Ok(library),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(OpenError::Failed(reasons.swap_remove(0)))
}

/// A driver whose functions have been found. It is not necessarily initialised.
#[derive(Debug)]
pub struct Driver {
    table: Table,
    /// `cuEventElapsedTime`, or its second version where the driver has dropped the first.
    elapsed: unsafe extern "system" fn(*mut f32, Event, Event) -> Code,
}

/// Writes the UUID of a device: `GPU-` and 32 hexadecimal digits in five groups.
fn written_uuid(bytes: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let group = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default();
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(group);
    format!("GPU-{}", groups.join("-"))
}

constants! {
    /// The flag of a stream that does not wait for the default stream.
    pub const STREAM_NON_BLOCKING: c_uint = CU_STREAM_NON_BLOCKING(1);
    /// The flags of an event that has a time.
    pub const EVENT_DEFAULT: c_uint = CU_EVENT_DEFAULT(0);
    /// The flag with which an event is recorded in a graph for those outside of it.
    pub const RECORD_EXTERNAL: c_uint = CU_EVENT_RECORD_EXTERNAL(1);
}

/// A counter of a memory pool, in bytes: a `CUmemPool_attribute` of `cuda.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolCounter(c_uint);

impl PoolCounter {
    constants! {
        pub const RESERVED: Self = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT(5);
        pub const USED: Self = CU_MEMPOOL_ATTR_USED_MEM_CURRENT(7);
    }
}

impl Driver {
    /// Resolves the driver's functions with `find`.
    ///
    /// # Errors
    ///
    /// Returns the name of the first function that the driver lacks.
    ///
    /// # Safety
    ///
    /// Each address that `find` returns must be that of the driver's function of that name, and must stay valid until
    /// the process ends.
    pub unsafe fn read(find: impl Fn(&CStr) -> Option<*mut c_void>) -> Result<Self, &'static str> {
        // SAFETY: the caller promises the addresses. The table's types are those of `cuda.h`.
        let table = unsafe { Table::read(find) }?;
        let elapsed = table
            .elapsed_v1
            .or(table.elapsed_v2)
            .ok_or("cuEventElapsedTime")?;
        Ok(Self { table, elapsed })
    }

    /// Returns the driver's functions.
    #[inline]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the milliseconds from one event to another as the driver does.
    ///
    /// # Errors
    ///
    /// Returns the driver's code, such as that of an event that the device has not passed.
    ///
    /// # Safety
    ///
    /// Both events must exist.
    pub unsafe fn elapsed_ms(&self, from: Event, to: Event) -> Result<f32, Code> {
        let mut milliseconds = 0.0_f32;
        // SAFETY: the caller promises that the events exist. Writes one number, which outlives the call.
        unsafe { (self.elapsed)(&raw mut milliseconds, from, to) }.ok()?;
        Ok(milliseconds)
    }

    /// Initialises the driver. Does nothing if it is initialised already.
    pub fn init(&self) -> Code {
        // SAFETY: may be called at any time and any number of times. Zero is the only value that the flags may have.
        unsafe { (self.table.init)(0) }
    }

    /// Returns `true` if the program has initialised the driver.
    pub fn is_initialised(&self) -> bool {
        let mut count = 0;
        // SAFETY: writes one integer, which outlives the call.
        unsafe { (self.table.device_count)(&raw mut count) }.is_ok()
    }

    /// Returns the driver's CUDA version, as `12040` for 12.4, or zero if the driver refuses to tell.
    pub fn version(&self) -> i32 {
        let mut version = 0;
        // SAFETY: writes one integer, which outlives the call.
        let _ = unsafe { (self.table.driver_version)(&raw mut version) };
        version
    }

    /// Returns the names of all devices.
    ///
    /// # Errors
    ///
    /// Returns the driver's code, such as that of a driver that is not initialised.
    pub fn devices(&self) -> Result<Vec<String>, Code> {
        let mut count = 0;
        // SAFETY: writes one integer, which outlives the call.
        unsafe { (self.table.device_count)(&raw mut count) }.ok()?;
        (0..count)
            .map(|ordinal| self.device_name(ordinal))
            .collect()
    }

    fn device_name(&self, ordinal: c_int) -> Result<String, Code> {
        const LENGTH: u16 = 256;
        let mut device = 0;
        // SAFETY: writes one integer, which outlives the call.
        unsafe { (self.table.device_get)(&raw mut device, ordinal) }.ok()?;
        let mut name = [0_u8; LENGTH as usize];
        let text = name.as_mut_ptr().cast();
        // SAFETY: writes at most `LENGTH` bytes, which is the size of the buffer.
        unsafe { (self.table.device_name)(text, LENGTH.into(), device) }.ok()?;
        let text = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }

    /// Returns the properties of the first `count` devices.
    pub fn properties(&self, count: usize) -> Vec<DeviceProperties> {
        let ordinals = (0..count).map_while(|ordinal| c_int::try_from(ordinal).ok());
        ordinals
            .map(|ordinal| self.properties_of(ordinal))
            .collect()
    }

    fn properties_of(&self, ordinal: c_int) -> DeviceProperties {
        let mut device = 0;
        // SAFETY: writes one integer, which outlives the call.
        if !unsafe { (self.table.device_get)(&raw mut device, ordinal) }.is_ok() {
            return DeviceProperties::default();
        }
        let total = || {
            let mut bytes = 0_usize;
            // SAFETY: writes one number, which outlives the call.
            let code = unsafe { (self.table.device_total?)(&raw mut bytes, device) };
            code.ok().ok().map(|()| bytes as u64)
        };
        DeviceProperties::read(total().unwrap_or_default(), |attribute| {
            let mut value = 0;
            let get = self.table.device_attribute?;
            // SAFETY: writes one integer, which outlives the call. The driver answers an attribute that it does not know
            // with an error.
            unsafe { get(&raw mut value, attribute, device) }
                .ok()
                .ok()?;
            Some(value)
        })
    }

    /// Returns the UUIDs of all devices as NVML writes them; `None` if the driver is not initialised, or does not know.
    pub fn uuids(&self) -> Option<Vec<String>> {
        let mut count = 0;
        // SAFETY: writes one integer, which outlives the call.
        unsafe { (self.table.device_count)(&raw mut count) }
            .ok()
            .ok()?;
        let uuids: Option<Vec<String>> = (0..count).map(|ordinal| self.uuid(ordinal)).collect();
        uuids.filter(|uuids| !uuids.is_empty())
    }

    fn uuid(&self, ordinal: c_int) -> Option<String> {
        let get = self.table.device_uuid_v2.or(self.table.device_uuid)?;
        let (mut device, mut bytes) = (0, [0_u8; 16]);
        // SAFETY: writes one integer, which outlives the call.
        unsafe { (self.table.device_get)(&raw mut device, ordinal) }
            .ok()
            .ok()?;
        // SAFETY: writes sixteen bytes, which outlive the call.
        unsafe { get(&raw mut bytes, device) }.ok().ok()?;
        Some(written_uuid(bytes))
    }

    /// Returns the free bytes and all bytes of the current context's device.
    pub fn memory_info(&self) -> Option<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers, which outlive the call.
        let code = unsafe { (self.table.memory_info?)(&raw mut free, &raw mut total) };
        code.ok().ok().map(|()| (free, total))
    }

    /// Returns a counter of a device's default memory pool, in bytes; `None` if the device or the driver has no pools.
    pub fn pool_counter(&self, device: u32, counter: PoolCounter) -> Option<u64> {
        let mut pool = ptr::null_mut();
        let device = c_int::try_from(device).ok()?;
        // SAFETY: writes one handle, which outlives the call. The driver answers an unknown ordinal with an error.
        unsafe { (self.table.default_pool?)(&raw mut pool, device) }
            .ok()
            .ok()?;
        let mut bytes = 0_u64;
        // SAFETY: the driver has just named the pool, which lives as long as its device. Both counters have 64 bits
        // (`cuda.h`, `CUmemPool_attribute`), as `bytes` has.
        unsafe { (self.table.pool_attribute?)(pool, counter.0, (&raw mut bytes).cast()) }
            .ok()
            .ok()?;
        Some(bytes)
    }

    /// Returns the context that a stream belongs to.
    ///
    /// # Errors
    ///
    /// Returns the driver's code, such as that of a context that was destroyed.
    ///
    /// # Safety
    ///
    /// The stream must exist.
    pub unsafe fn context_of(&self, stream: RawStream) -> Result<RawContext, Failed> {
        let mut context = RawContext::NONE;
        // SAFETY: the caller promises that the stream exists. Writes one pointer, which outlives the call.
        unsafe { (self.table.stream_context)(stream, &raw mut context) }.ok_of("cuStreamGetCtx")?;
        Ok(context)
    }
}
