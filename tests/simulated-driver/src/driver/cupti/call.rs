//! Driver calls that call back to the client of CUPTI or have records.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::fault::CallbackFault;
use super::ids::{self, kind};
use super::record::{Body, Record};
use super::state::{self, Cupti, Subscriber};
use super::{delivery, exports};
use crate::driver::code::Code;
use crate::driver::entry::EntryPoint;
use crate::driver::ffi::{self, CallbackData};
use crate::driver::state::{DriverState, LockedState};
use crate::driver::{ffi::word, thread};
use crate::report::ActivityKind;

/// `true` while a client subscribes to a callback, or a kind of record is enabled.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// The stream of a record that belongs to none.
const NO_STREAM: u32 = u32::MAX;

thread_local! {
    /// How many functions of the client this thread is in.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
    /// The correlation number of the driver call in progress, or 0.
    static CORRELATION: Cell<u32> = const { Cell::new(0) };
}

/// Returns `true` if driver calls have anything to do for a client.
#[inline]
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Relaxed)
}

pub(super) fn set_active(active: bool) {
    ACTIVE.store(active, Relaxed);
}

/// Returns `true` on a thread that is in a function of the client.
pub(super) fn is_inside_client() -> bool {
    INSIDE.get() > 0
}

/// Runs a function of the client.
pub(super) fn in_client<R>(call: impl FnOnce() -> R) -> R {
    INSIDE.set(INSIDE.get() + 1);
    let result = call();
    INSIDE.set(INSIDE.get() - 1);
    result
}

/// The call that an operation comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) correlation: u32,
    /// The operation gets a record.
    pub(crate) recorded: bool,
    /// The difference of the record's time to the driver's.
    pub(crate) offset: u64,
}

/// Returns the origin of an operation that this thread queues now.
pub(crate) fn origin(kind: Option<ActivityKind>) -> Option<Origin> {
    let correlation = CORRELATION.get();
    if !is_active() || correlation == 0 {
        return None;
    }
    let cupti = state::lock();
    let has = |kind| cupti.kinds.contains(&kind);
    let recorded = match kind? {
        ActivityKind::Kernel => has(kind::CONCURRENT_KERNEL) || has(kind::KERNEL),
        ActivityKind::Copy => has(kind::MEMCPY) || has(kind::MEMCPY2),
        ActivityKind::Fill => has(kind::MEMSET),
        _ => false,
    };
    Some(Origin {
        correlation,
        recorded,
        offset: cupti.offset,
    })
}

/// A driver call in progress.
#[derive(Debug)]
pub(crate) struct ApiCall {
    entry: &'static EntryPoint,
    arguments: usize,
    correlation: u32,
    /// The value that the client keeps from one callback to the other.
    data: u64,
    begin: u64,
    context: (usize, u32),
    symbol: Option<&'static CStr>,
}

impl ApiCall {
    /// Begins a call with `arguments` in the layout of CUPTI's generated structures. Returns `None`
    /// for a call that is not traced.
    #[cold]
    pub(crate) fn begin(entry: &'static EntryPoint, arguments: *const c_void) -> Option<Self> {
        if entry.callback == 0 || is_inside_client() {
            return None;
        }
        let arguments = arguments as usize;
        exports::follow_clock();
        let mut driver = LockedState::new();
        let begin = driver.clock.now();
        let context = current(&mut driver);
        let symbol = kernel_name(&mut driver, entry, arguments);
        drop(driver);
        let mut cupti = state::lock();
        let correlation = cupti.next_correlation();
        let records = !cupti.kinds.is_empty();
        drop(cupti);
        CORRELATION.set(correlation);
        if records {
            delivery::provide_buffer();
        }
        let mut call = Self {
            entry,
            arguments,
            correlation,
            data: 0,
            begin,
            context,
            symbol,
        };
        call.call_back(0, 0);
        Some(call)
    }

    /// Ends a call that returns `code`.
    #[cold]
    pub(crate) fn end(mut self, code: Code) {
        CORRELATION.set(0);
        if state::lock().faults.early_records {
            delivery::deliver_records_of(self.correlation);
        }
        self.call_back(1, code);
        self.record(code);
    }

    fn call_back(&mut self, site: u32, code: Code) {
        let callback = self.entry.callback;
        let data = CallbackData {
            site,
            function_name: ids::name_of(callback).map_or(0, |name| name.as_ptr() as usize),
            arguments: self.arguments,
            return_value: &raw const code as usize,
            symbol_name: self.symbol.map_or(0, |name| name.as_ptr() as usize),
            context: self.context.0,
            context_id: self.context.1,
            correlation_data: &raw mut self.data as usize,
            correlation: self.correlation,
        };
        notify(ids::DRIVER_API, callback, &data);
    }

    /// Records what the call waited for.
    fn record(&self, code: Code) {
        let mut driver = LockedState::new();
        let end = driver.clock.now();
        let (kind, stream, event) = self.synchronization(&mut driver);
        drop(driver);
        let thread = thread::id();
        let mut cupti = state::lock();
        let record = Record {
            thread,
            offset: cupti.offset,
            start: self.begin,
            end,
            device: 0,
            context: self.context.1,
            stream,
            correlation: self.correlation,
            graph: 0,
            node: 0,
            body: Body::Synchronization { kind, event, code },
        };
        if kind != 0 && cupti.kinds.contains(&kind::SYNCHRONIZATION) {
            cupti.keep(end, record);
        }
    }

    /// Returns the kind of synchronization that the call is, its stream and its event.
    fn synchronization(&self, driver: &mut DriverState) -> (u32, u32, u32) {
        let mut stream_id = |handle: usize| {
            let key = driver
                .streams
                .get(handle)
                .map(|_| handle)
                .or_else(|_| driver.stream_key(handle));
            let id = key.and_then(|key| driver.stream(key).map(|stream| stream.id));
            id.map_or(NO_STREAM, |id| u32::try_from(id).unwrap_or(NO_STREAM))
        };
        // Events are numbered by the low bits of their handles.
        let event_id = |handle: usize| u32::try_from(handle & 0xff_ffff).unwrap_or(0) >> 4;
        let arguments = self.arguments;
        match self.entry.name {
            "cuEventSynchronize" => (1, NO_STREAM, event_id(word(arguments, 0))),
            "cuStreamWaitEvent" => (
                2,
                stream_id(word(arguments, 0)),
                event_id(word(arguments, 8)),
            ),
            "cuStreamSynchronize" => (3, stream_id(word(arguments, 0)), NO_STREAM),
            "cuCtxSynchronize" => (4, NO_STREAM, NO_STREAM),
            _ => (0, NO_STREAM, NO_STREAM),
        }
    }
}

/// Calls the client back for one end of a call, if it asked for that.
pub(super) fn notify(domain: u32, callback: u32, data: &CallbackData) {
    let cupti = state::lock();
    let subscriber = match cupti.subscriber {
        Some(subscriber) if cupti.callbacks.contains(&(domain, callback)) => Some(subscriber),
        Some(_) => None,
        None => cupti.faults.lingering,
    };
    let is_foreign = cupti.faults.callbacks == CallbackFault::Foreign;
    drop(cupti);
    let Some(Subscriber {
        callback: Some(function),
        user,
        ..
    }) = subscriber
    else {
        return;
    };
    state::lock().report.callbacks += 1;
    let call = || in_client(|| function(user, domain, callback, std::ptr::from_ref(data)));
    if is_foreign {
        std::thread::scope(|scope| drop(scope.spawn(call).join()));
    } else {
        call();
    }
}

/// Returns the handle and the number of this thread's current context.
pub(super) fn current(driver: &mut DriverState) -> (usize, u32) {
    let handle = thread::current();
    if handle == 0 {
        return (0, 0);
    }
    let id = match driver.context_key(handle) {
        Ok(key) => driver.context(key).map_or(0, |context| context.id),
        Err(_) => 0,
    };
    (handle, u32::try_from(id).unwrap_or(0))
}

/// Returns the name of the kernel that a call launches.
fn kernel_name(
    driver: &mut DriverState,
    entry: &EntryPoint,
    arguments: usize,
) -> Option<&'static CStr> {
    let function = match entry.name {
        "cuLaunchKernel" | "cuLaunchCooperativeKernel" => ffi::word(arguments, 0),
        "cuLaunchKernelEx" => ffi::word(arguments, 8),
        _ => return None,
    };
    let name = driver.functions.get(function).ok()?.name();
    let mut cupti: std::sync::MutexGuard<'_, Cupti> = state::lock();
    Some(cupti.name(&name))
}
