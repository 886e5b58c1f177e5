//! The driver's entry points that the profiler calls, found by name when the program runs.
//!
//! One binary works with every driver from CUDA 11 on, and with none; and no error of the user's is
//! taken away, as sharing a binding's context would.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use super::code::{Code, Failed};
use super::elapsed::Elapsed;
use crate::stream_key::RawStream;

/// An event of the driver's. Made by [`Driver::create_event`], and destroyed by whoever owns its pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct Event(*mut c_void);

/// A context; null for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct RawContext(pub(crate) *mut c_void);

// SAFETY: the driver's handles are names for its objects, and its functions may be called with them from
// any thread; nothing here dereferences one.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}
// SAFETY: as above.
unsafe impl Send for RawContext {}
// SAFETY: as above.
unsafe impl Sync for RawContext {}

#[cfg(test)]
impl Event {
    pub(crate) fn for_test(handle: usize) -> Self {
        Self(ptr::without_provenance_mut(handle))
    }
}

impl RawContext {
    pub(crate) const NONE: Self = Self(ptr::null_mut());
}

macro_rules! driver {
    (
        required { $($(#[$doc:meta])* $field:ident = $symbol:literal: fn($($arg:ty),*);)* }
        optional { $($(#[$odoc:meta])* $ofield:ident = $osymbol:literal: fn($($oarg:ty),*);)* }
    ) => {
        /// The table of entry points.
        #[derive(Debug)]
        struct Table {
            $($(#[$doc])* $field: unsafe extern "system" fn($($arg),*) -> Code,)*
            $($(#[$odoc])* $ofield: Option<unsafe extern "system" fn($($oarg),*) -> Code>,)*
        }

        impl Table {
            /// Asks `find` for each symbol; the error is the first required one that is missing.
            ///
            /// # Safety
            ///
            /// What `find` returns for a symbol must be the address of the driver's function of that
            /// name, and stay valid for the rest of the process.
            #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "no library to read"))]
            unsafe fn read(find: impl Fn(&CStr) -> Option<*mut c_void>) -> Result<Self, &'static str> {
                Ok(Self {
                    $($field: {
                        let symbol = find($symbol).ok_or($symbol.to_str().unwrap_or_default())?;
                        // SAFETY: the caller vouches for the function; the types are those that
                        // the driver's header gives it since CUDA 11, with integers for its enums.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "system" fn($($arg),*) -> Code>(symbol) }
                    },)*
                    $($ofield: find($osymbol).map(|symbol| {
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "system" fn($($oarg),*) -> Code>(symbol) }
                    }),)*
                })
            }
        }
    };
}

driver! {
    required {
        init = c"cuInit": fn(c_uint);
        driver_version = c"cuDriverGetVersion": fn(*mut c_int);
        error_name = c"cuGetErrorName": fn(Code, *mut *const c_char);
        device_count = c"cuDeviceGetCount": fn(*mut c_int);
        device_get = c"cuDeviceGet": fn(*mut c_int, c_int);
        device_name = c"cuDeviceGetName": fn(*mut c_char, c_int, c_int);
        context_current = c"cuCtxGetCurrent": fn(*mut RawContext);
        context_set = c"cuCtxSetCurrent": fn(RawContext);
        context_device = c"cuCtxGetDevice": fn(*mut c_int);
        primary_state = c"cuDevicePrimaryCtxGetState": fn(c_int, *mut c_uint, *mut c_int);
        primary_retain = c"cuDevicePrimaryCtxRetain": fn(*mut RawContext, c_int);
        primary_release = c"cuDevicePrimaryCtxRelease_v2": fn(c_int);
        stream_create = c"cuStreamCreate": fn(*mut RawStream, c_uint);
        stream_destroy = c"cuStreamDestroy_v2": fn(RawStream);
        stream_context = c"cuStreamGetCtx": fn(RawStream, *mut RawContext);
        stream_capturing = c"cuStreamIsCapturing": fn(RawStream, *mut c_uint);
        capture_mode = c"cuThreadExchangeStreamCaptureMode": fn(*mut c_uint);
        event_create = c"cuEventCreate": fn(*mut Event, c_uint);
        event_destroy = c"cuEventDestroy_v2": fn(Event);
        event_record = c"cuEventRecord": fn(Event, RawStream);
        event_query = c"cuEventQuery": fn(Event);
        event_synchronize = c"cuEventSynchronize": fn(Event);
    }
    optional {
        /// In every driver so far; one that drops it has the other.
        elapsed_v1 = c"cuEventElapsedTime": fn(*mut f32, Event, Event);
        /// From driver 570 on.
        elapsed_v2 = c"cuEventElapsedTime_v2": fn(*mut f32, Event, Event);
        /// From driver 470 on.
        record_with_flags = c"cuEventRecordWithFlags": fn(Event, RawStream, c_uint);
        /// From driver 535 on.
        context_id = c"cuCtxGetId": fn(RawContext, *mut u64);
        capture_info = c"cuStreamGetCaptureInfo": fn(RawStream, *mut c_uint, *mut u64);
        memory_info = c"cuMemGetInfo_v2": fn(*mut usize, *mut usize);
        /// From driver 460 on, as the next one.
        default_pool = c"cuDeviceGetDefaultMemPool": fn(*mut *mut c_void, c_int);
        pool_attribute = c"cuMemPoolGetAttribute": fn(*mut c_void, c_uint, *mut c_void);
    }
}

/// The driver, ready to be called.
#[derive(Debug)]
pub(crate) struct Driver {
    table: Table,
    elapsed: unsafe extern "system" fn(*mut f32, Event, Event) -> Code,
}

/// What is asked of a memory pool: `CUmemPool_attribute` of `cuda.h`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PoolCounter {
    /// `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`
    Reserved = 5,
    /// `CU_MEMPOOL_ATTR_USED_MEM_CURRENT`
    Used = 7,
}

/// Where a stream stands with captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capturing {
    No,
    /// It captures, or its capture has been spoilt, or recording would spoil another stream's.
    Yes,
    /// It cannot be told.
    Unknown(Failed),
}

impl Driver {
    /// Reads the table; the error is the symbol that the driver lacks.
    ///
    /// # Safety
    ///
    /// As for the table: each address that `find` returns is the driver's function of that name, for the
    /// rest of the process.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "no library to read"))]
    pub(crate) unsafe fn read(
        find: impl Fn(&CStr) -> Option<*mut c_void>,
    ) -> Result<Self, &'static str> {
        // SAFETY: the caller's promise is the one asked for.
        let table = unsafe { Table::read(find) }?;
        let elapsed = table
            .elapsed_v1
            .or(table.elapsed_v2)
            .ok_or("cuEventElapsedTime")?;
        Ok(Self { table, elapsed })
    }

    pub(crate) fn init(&self) -> Code {
        // SAFETY: may be called at any time, any number of times; zero is the only flag there is.
        unsafe { (self.table.init)(0) }
    }

    /// The CUDA version of the driver, as `12040` for 12.4; zero where it does not say.
    pub(crate) fn version(&self) -> i32 {
        let mut version = 0;
        // SAFETY: writes one integer, which lives for the call.
        let _ = unsafe { (self.table.driver_version)(&raw mut version) };
        version
    }

    /// The name of a code, as `CUDA_ERROR_NO_DEVICE`; one of ours where the driver has none.
    pub(crate) fn name_of(&self, code: Code) -> String {
        let mut name = ptr::null();
        // SAFETY: writes one pointer, which lives for the call.
        let result = unsafe { (self.table.error_name)(code, &raw mut name) };
        if !result.is_ok() || name.is_null() {
            return format!("CUDA error {}", code.0);
        }
        // SAFETY: on success it is a terminated string in the driver's constant data.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_string_lossy().into_owned()
    }

    /// The names of the devices there are.
    pub(crate) fn devices(&self) -> Result<Vec<String>, Code> {
        let mut count = 0;
        // SAFETY: writes one integer, which lives for the call.
        unsafe { (self.table.device_count)(&raw mut count) }.ok()?;
        (0..count)
            .map(|ordinal| self.device_name(ordinal))
            .collect()
    }

    fn device_name(&self, ordinal: c_int) -> Result<String, Code> {
        const LENGTH: u16 = 256;
        let mut device = 0;
        // SAFETY: writes one integer, which lives for the call.
        unsafe { (self.table.device_get)(&raw mut device, ordinal) }.ok()?;
        let mut name = [0_u8; LENGTH as usize];
        let text = name.as_mut_ptr().cast();
        // SAFETY: writes at most as many bytes as it is told there are.
        unsafe { (self.table.device_name)(text, LENGTH.into(), device) }.ok()?;
        let text = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }

    /// The context that is current on this thread; [`RawContext::NONE`] where there is none.
    #[inline]
    pub(crate) fn current_context(&self) -> Result<RawContext, Code> {
        let mut context = RawContext::NONE;
        // SAFETY: writes one pointer, which lives for the call.
        unsafe { (self.table.context_current)(&raw mut context) }.ok()?;
        Ok(context)
    }

    /// The ordinal of the current context's device.
    pub(crate) fn current_device(&self) -> Option<u32> {
        let mut device = -1;
        // SAFETY: writes one integer, which lives for the call.
        let code = unsafe { (self.table.context_device)(&raw mut device) };
        code.ok().ok()?;
        u32::try_from(device).ok()
    }

    /// Bytes that are free and bytes that there are, on the current context's device.
    pub(crate) fn memory_info(&self) -> Option<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers, which live for the call.
        let code = unsafe { (self.table.memory_info?)(&raw mut free, &raw mut total) };
        code.ok().ok().map(|()| (free, total))
    }

    /// A counter of the default pool of a device, in bytes; none where there are no pools.
    pub(crate) fn pool_counter(&self, device: u32, counter: PoolCounter) -> Option<u64> {
        let mut pool = ptr::null_mut();
        let device = c_int::try_from(device).ok()?;
        // SAFETY: writes one handle, which lives for the call; an ordinal that there is not is an error.
        unsafe { (self.table.default_pool?)(&raw mut pool, device) }
            .ok()
            .ok()?;
        let mut bytes = 0_u64;
        // SAFETY: the pool is the one that the driver has just named, and lives as long as its device. These
        // counters are numbers of 64 bits (`cuda.h`, `CUmemPool_attribute`), as is what is written to.
        unsafe { (self.table.pool_attribute?)(pool, counter as c_uint, (&raw mut bytes).cast()) }
            .ok()
            .ok()?;
        Some(bytes)
    }

    /// Makes a context current on this thread.
    pub(crate) fn set_context(&self, context: RawContext) -> Code {
        // SAFETY: the context was current on some thread, or belongs to a stream that its owner vouched
        // for; the driver answers a code for one that has been destroyed since.
        unsafe { (self.table.context_set)(context) }
    }

    /// Runs `f` with a context current on this thread, and puts back what was current before.
    pub(crate) fn with_context<T>(
        &self,
        context: RawContext,
        f: impl FnOnce() -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let failed = |call| move |code| Failed { call, code };
        let before = self.current_context().map_err(failed("cuCtxGetCurrent"))?;
        if before == context {
            return f();
        }
        // What it returns may be an earlier failure, and the context be current all the same.
        let set = self.set_context(context).ok_of("cuCtxSetCurrent");
        let result = set.and_then(|()| f());
        // What was current a moment ago can be again; and what was done is done.
        let _ = self.set_context(before);
        result
    }

    /// Makes a call that names a stream or an event, and makes it again with its context current where the driver
    /// answers that it wants one on the thread (201). CUDA does not document which calls do, and drivers differ.
    ///
    /// All such calls that the profiler makes without having made the context current go through here.
    #[inline]
    pub(crate) fn retried_in<T>(
        &self,
        context: RawContext,
        call: impl Fn() -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        match call() {
            Err(failed) if failed.code == Code::INVALID_CONTEXT => self.retry_in(context, call),
            answer => answer,
        }
    }

    #[cold]
    fn retry_in<T>(
        &self,
        context: RawContext,
        call: impl Fn() -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        self.with_context(context, call)
    }

    /// The number of a context in the process, which no other one ever has; none where the driver is too
    /// old to say.
    #[inline]
    pub(crate) fn context_id(&self, context: RawContext) -> Option<Result<u64, Code>> {
        let ask = self.table.context_id?;
        let ask = || {
            let mut id = 0;
            // SAFETY: writes one integer, which lives for the call; the driver answers a code for a context that
            // has been destroyed.
            unsafe { ask(context, &raw mut id) }.ok_of("cuCtxGetId")?;
            Ok(id)
        };
        Some(self.retried_in(context, ask).map_err(|failed| failed.code))
    }

    /// Whether the driver numbers contexts, so that it can be told whether an object's context is still there.
    pub(crate) fn has_context_ids(&self) -> bool {
        self.table.context_id.is_some()
    }

    /// Holds on to the current context, if it is the primary one of its device; true where it is.
    pub(crate) fn retain_if_primary(&self, context: RawContext) -> Result<bool, Code> {
        let (mut device, mut flags, mut active) = (0, 0, 0);
        // SAFETY: writes one integer, which lives for the call.
        unsafe { (self.table.context_device)(&raw mut device) }.ok()?;
        // SAFETY: writes two integers, which live for the call.
        unsafe { (self.table.primary_state)(device, &raw mut flags, &raw mut active) }.ok()?;
        // To retain one that is not active would make it.
        if active == 0 {
            return Ok(false);
        }
        let mut primary = RawContext::NONE;
        // SAFETY: writes one pointer, which lives for the call.
        unsafe { (self.table.primary_retain)(&raw mut primary, device) }.ok()?;
        if primary != context {
            // SAFETY: it was retained just now. That does not end it: it was active before.
            let _ = unsafe { (self.table.primary_release)(device) };
        }
        Ok(primary == context)
    }

    /// The context a stream belongs to.
    ///
    /// # Safety
    ///
    /// The stream must exist.
    pub(crate) unsafe fn context_of(&self, stream: RawStream) -> Result<RawContext, Failed> {
        let mut context = RawContext::NONE;
        // SAFETY: the caller says that the stream exists; writes one pointer, which lives for the call.
        unsafe { (self.table.stream_context)(stream, &raw mut context) }.ok_of("cuStreamGetCtx")?;
        Ok(context)
    }

    /// A stream of the current context that waits for no other one.
    pub(crate) fn create_stream(&self) -> Result<RawStream, Failed> {
        const NON_BLOCKING: c_uint = 1;
        let mut stream = RawStream::LEGACY;
        // SAFETY: writes one pointer, which lives for the call.
        unsafe { (self.table.stream_create)(&raw mut stream, NON_BLOCKING) }
            .ok_of("cuStreamCreate")?;
        Ok(stream)
    }

    pub(crate) fn destroy_stream(&self, stream: RawStream) {
        // SAFETY: called once, by the owner of what `create_stream` returned.
        let _ = unsafe { (self.table.stream_destroy)(stream) };
    }

    /// Whether an event may be recorded in a stream of a context without becoming part of a capture, or spoiling
    /// one.
    #[inline]
    pub(crate) fn capturing(&self, context: RawContext, stream: RawStream) -> Capturing {
        use super::code::Fault;

        let ask = || {
            let mut status = 0;
            // SAFETY: whoever handed the stream over vouched for it, and it is held for as long as the scope;
            // writes one integer, which lives for the call.
            unsafe { (self.table.stream_capturing)(stream, &raw mut status) }
                .ok_of("cuStreamIsCapturing")?;
            Ok(status)
        };
        match self.retried_in(context, ask) {
            Ok(0) => Capturing::No,
            Ok(_) => Capturing::Yes,
            Err(failed) if failed.code.fault() == Fault::Capture => Capturing::Yes,
            Err(failed) => Capturing::Unknown(failed),
        }
    }

    /// The number of the capture that a stream is part of, which no other one has; none where it captures nothing, or
    /// the driver has no numbers.
    pub(crate) fn capture_id(&self, context: RawContext, stream: RawStream) -> Option<u64> {
        const ACTIVE: c_uint = 1;
        let ask = self.table.capture_info?;
        let ask = || {
            let (mut status, mut id) = (0, 0);
            // SAFETY: as for `capturing`; writes two integers, which live for the call.
            unsafe { ask(stream, &raw mut status, &raw mut id) }.ok_of("cuStreamGetCaptureInfo")?;
            Ok((status, id))
        };
        let (status, id) = self.retried_in(context, ask).ok()?;
        (status == ACTIVE).then_some(id)
    }

    /// Runs `f` with this thread taking no part in captures of other threads: a call that may not be made
    /// during them would otherwise spoil them.
    pub(crate) fn relaxed<T>(&self, f: impl FnOnce() -> T) -> T {
        let before = self.exchange_capture_mode(RELAXED);
        let result = f();
        if let Some(before) = before {
            self.exchange_capture_mode(before);
        }
        result
    }

    /// As [`relaxed`](Self::relaxed), for a thread of our own, to its end.
    pub(crate) fn relax_for_ever(&self) {
        self.exchange_capture_mode(RELAXED);
    }

    fn exchange_capture_mode(&self, mode: c_uint) -> Option<c_uint> {
        let mut mode = mode;
        // SAFETY: reads and writes one integer, which lives for the call.
        let code = unsafe { (self.table.capture_mode)(&raw mut mode) };
        code.is_ok().then_some(mode)
    }

    /// An event of the current context that keeps time.
    pub(crate) fn create_event(&self) -> Result<Event, Failed> {
        const DEFAULT: c_uint = 0;
        let mut event = Event(ptr::null_mut());
        // SAFETY: writes one pointer, which lives for the call.
        unsafe { (self.table.event_create)(&raw mut event, DEFAULT) }.ok_of("cuEventCreate")?;
        Ok(event)
    }

    pub(crate) fn destroy_event(&self, event: Event) {
        // SAFETY: an `Event` comes from `create_event`, and whoever owns the item it stands in destroys it once.
        let _ = unsafe { (self.table.event_destroy)(event) };
    }

    /// Puts an event in a stream. Never waits.
    #[inline]
    pub(crate) fn record(&self, event: Event, stream: RawStream) -> Result<(), Failed> {
        // SAFETY: the event is its pair's owner's; whoever handed the stream over vouched for it, and it
        // is held for as long as the scope.
        unsafe { (self.table.event_record)(event, stream) }.ok_of("cuEventRecord")
    }

    /// Puts an event in a capturing stream that each replay of the graph records; refused where the driver is too
    /// old to do so.
    pub(crate) fn record_external(&self, event: Event, stream: RawStream) -> Result<(), Failed> {
        const EXTERNAL: c_uint = 1;
        const CALL: &str = "cuEventRecordWithFlags";
        let record = self.table.record_with_flags.ok_or(Failed {
            call: CALL,
            code: Code::NOT_SUPPORTED,
        })?;
        // SAFETY: as for `record`.
        unsafe { record(event, stream, EXTERNAL) }.ok_of(CALL)
    }

    /// Whether the device has passed an event.
    pub(crate) fn query(&self, event: Event) -> Code {
        // SAFETY: the event is its pair's owner's.
        unsafe { (self.table.event_query)(event) }
    }

    /// Waits for an event.
    pub(crate) fn synchronize(&self, event: Event) -> Code {
        // SAFETY: the event is its pair's owner's.
        unsafe { (self.table.event_synchronize)(event) }
    }

    /// How far apart two events are, both of which the device has passed. To half a microsecond, and to the 24 bits
    /// of the driver's floating point number.
    pub(crate) fn elapsed(&self, from: Event, to: Event) -> Result<Elapsed, Code> {
        let mut milliseconds = 0.0_f32;
        // SAFETY: the events are their pairs' owners'; writes one number, which lives for the call.
        unsafe { (self.elapsed)(&raw mut milliseconds, from, to) }.ok()?;
        Ok(Elapsed::from_milliseconds(milliseconds))
    }

    /// The nanoseconds from one event to another, in whichever order the device has passed them; none where that
    /// cannot be told.
    pub(crate) fn distance(&self, from: Event, to: Event) -> Option<f64> {
        self.elapsed(from, to).ok()?.distance()
    }
}

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: c_uint = 2;
