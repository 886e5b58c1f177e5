//! The beginning of a scope that is to have a GPU time.

use std::mem::{self, ManuallyDrop};
use std::num::NonZero;

use profiler_cuda_sys::driver::{Code, Driver, Fault};
use profiler_host::sync::ReentrancyGuard;
use profiler_report::CudaLoss;
use profiler_report::internal::RawStream;

use super::context_cache::ContextCache;
use super::record_times;
use super::recording::{enter_own_context, is_graph, loss_of, loss_of_faults, record};
use super::scope::{
    CostSampling, GpuOptions, Mode, NewScope, OpenGpuScope, StreamOwnership, TaskGpuScope,
};
use super::state::{self, GpuThread};
use super::target::{NamedBy, Target, target};
use crate::clock::now;
use crate::cuda::context::Context;
use crate::cuda::context::measurement::{Enclosing, GpuMeasurement, ScopeRef};
use crate::cuda::ffi::{EventApi, library, refusals};
use crate::cuda::resolver;

/// The GPU part of a scope that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It has one.
    Opened,
    /// It is to be measured on a default stream of the driver, and no context is current; or the driver cannot be
    /// called here.
    NoContext,
    /// No stream is named for it.
    NoStream,
    /// No driver was in use when it began, so its stream was not looked for.
    NoDriver,
}

/// Opens the GPU part of a scope with options on this thread, and takes the stream, unless it returns without one.
// Inlined, as is `begin_plain`, so that each caller has a copy of `begin` for its own kind of options.
#[inline(always)]
pub(crate) fn begin_with(serial: u64, name: u32, options: &mut GpuOptions) -> Begun {
    begin(serial, name, Some(options))
}

/// Opens the GPU part of a scope without options on this thread.
#[inline(always)]
pub(crate) fn begin_plain(serial: u64, name: u32) -> Begun {
    begin(serial, name, None)
}

#[inline(always)]
fn begin(serial: u64, name: u32, options: Option<&mut GpuOptions>) -> Begun {
    // Inside the profiler, a lock of the profiler's may be held. A measured allocator has only a CPU time there.
    let Some(driver) = library::driver().filter(|_| !ReentrancyGuard::is_entered()) else {
        return Begun::NoContext;
    };
    // SAFETY: it is dropped when this function returns.
    let Some(mut thread) = (unsafe { state::borrow() }) else {
        return Begun::NoContext;
    };
    if thread.sampling() == CostSampling::On {
        return begin_sampled(&mut thread, driver, serial, name, options);
    }
    let new = NewScope::new(serial, name);
    let opened = open_scope(&mut thread, driver, new, options, CostSampling::Off);
    opened.err().unwrap_or(Begun::Opened)
}

/// Opens a scope in which the profiler's own cost is sampled.
// Has a copy of `open_scope` of its own, out of line, so that the usual copy keeps no readings of the clock. Takes the serial
// and the name apart: a `NewScope` would be packed into registers before each call of `begin`, sampled or not.
#[cold]
#[inline(never)]
fn begin_sampled(
    thread: &mut GpuThread,
    driver: &Driver,
    serial: u64,
    name: u32,
    options: Option<&mut GpuOptions>,
) -> Begun {
    let new = NewScope::new(serial, name);
    let begun = now();
    let opened = open_scope(thread, driver, new, options, CostSampling::On);
    if let (Ok(()), Some(opened)) = (opened, thread.stack.innermost()) {
        opened.cost = NonZero::new(now().saturating_sub(begun));
    }
    opened.err().unwrap_or(Begun::Opened)
}

/// Opens the GPU part of a future, which keeps it.
///
/// # Errors
///
/// Returns why it has none.
pub(crate) fn begin_task(
    name: u32,
    options: Option<&mut GpuOptions>,
) -> Result<TaskGpuScope, Begun> {
    let driver = library::driver().ok_or(Begun::NoContext)?;
    let begun = state::with(|thread| {
        open(thread, driver, NewScope::of_future(name), options)?;
        let mut opened = thread.stack.pop_innermost().ok_or(Begun::NoContext)?;
        let parent = opened.measurement.parent.map(NonZero::get);
        if parent.is_some_and(|parent| thread.stack.is_segment(parent)) {
            // It may end before the future.
            opened.measurement.parent = None;
        }
        // The future may end on another thread, which does not keep this thread's current stream.
        if opened.is_on_current_stream()
            && let Some(stream) = thread.current()
        {
            opened.ownership = StreamOwnership::owned(stream.clone());
        }
        let mut task = thread.take_task_box();
        task.set(opened);
        Ok(task)
    });
    begun.unwrap_or(Err(Begun::NoContext))
}

/// Opens a scope as the innermost one of the thread.
pub(super) fn open(
    thread: &mut GpuThread,
    driver: &impl EventApi,
    new: NewScope,
    options: Option<&mut GpuOptions>,
) -> Result<(), Begun> {
    let sampling = thread.sampling();
    open_scope(thread, driver, new, options, sampling)
}

/// [`open`], inlined.
// Not inlined in debug builds, where each copy takes space in the frame of its caller, on a stack that may be small.
#[cfg_attr(debug_assertions, inline(never))]
#[cfg_attr(not(debug_assertions), inline(always))]
fn open_scope(
    thread: &mut GpuThread,
    driver: &impl EventApi,
    new: NewScope,
    options: Option<&mut GpuOptions>,
    sampling: CostSampling,
) -> Result<(), Begun> {
    let NewScope {
        serial,
        name,
        is_future,
    } = new;
    let (explicit, mode) = match options {
        Some(options) => (Some(&mut options.stream), options.mode),
        None => (None, Mode::Later),
    };
    let handles = match &explicit {
        Some(Some(stream)) => Some(stream.handles),
        _ => None,
    };
    let target = target(thread, handles).ok_or(Begun::NoStream)?;
    if thread.backoff.skips_scope() {
        open_without(thread, serial, name, CudaLoss::HostFunction);
        return Ok(());
    }
    let target = match target.in_context(driver) {
        Ok(target) => target.ok_or(Begun::NoContext)?,
        Err(None) => return Err(Begun::NoStream),
        Err(Some(code)) => {
            let loss = without_context(thread, driver, code);
            open_without(thread, serial, name, loss);
            return Ok(());
        }
    };
    let number = thread.number();
    // Before the event is recorded, as it may allocate.
    thread.stack.reserve();
    let Some(cache) = thread.context_cache(driver, target.handles.context) else {
        open_without(thread, serial, name, CudaLoss::TooManyContexts);
        return Ok(());
    };
    let context = cache.context;
    let outcome = record_begin(cache, driver, target, mode, sampling);
    let (mut measurement, has_begun) = match outcome {
        Ok(measurement) => (measurement, true),
        Err(loss) => (without_events(thread, loss), false),
    };
    let scope = ScopeRef {
        key: thread.next_key(number),
        stream_key: state::stream_key(context, target.handles.stream, number),
        name,
        has_begun,
    };
    // Writes a cache line that the end of the scope needs too. The resolver's core last wrote it, and its transfer overlaps the
    // measured call.
    measurement.begin(scope, target.named_by.is_fallback());
    if !thread.stack.is_empty() || measurement.has_enclosing() {
        thread.stack.enclose(&mut measurement, is_future);
    }
    let mut opened = OpenGpuScope::new(measurement, target.named_by);
    opened.mode = mode;
    if let Some(stream) = explicit.and_then(Option::take) {
        let ownership = StreamOwnership::owned(stream);
        // A new scope owns nothing that would have to be dropped, which the compiler would check for otherwise.
        let _nothing = ManuallyDrop::new(mem::replace(&mut opened.ownership, ownership));
    }
    thread.stack.push(serial, opened);
    Ok(())
}

/// Returns a measurement for a scope whose first event was not recorded.
#[cold]
#[inline(never)]
fn without_events(thread: &mut GpuThread, loss: CudaLoss) -> Box<GpuMeasurement> {
    if loss == CudaLoss::HostFunction {
        thread.backoff.extend();
    }
    // Do not attribute the memory to the program's scopes.
    let _reentrancy = ReentrancyGuard::try_enter();
    GpuMeasurement::without(loss)
}

/// Returns why a scope has no GPU time if the driver does not tell which context is current.
#[cold]
#[inline(never)]
fn without_context(thread: &mut GpuThread, driver: &impl EventApi, code: Code) -> CudaLoss {
    if code.fault() == Fault::NotPermitted {
        refusals::warn_of_host_function();
        thread.backoff.extend();
        return CudaLoss::HostFunction;
    }
    refusals::warn_of_refused_call(driver, "cuCtxGetCurrent", code);
    CudaLoss::DriverRefused
}

/// Opens a scope that has no GPU time, and whose stream is not known.
#[cold]
#[inline(never)]
fn open_without(thread: &mut GpuThread, serial: u64, name: u32, loss: CudaLoss) {
    // Do not attribute the memory to the program's scopes.
    let _reentrancy = ReentrancyGuard::try_enter();
    let mut measurement = GpuMeasurement::without(loss);
    measurement.begin(thread.unplaced_scope(name), false);
    measurement.set_enclosing(&Enclosing::NONE);
    thread.stack.reserve();
    let opened = OpenGpuScope::new(measurement, NamedBy::Call);
    thread.stack.push(serial, opened);
}

/// Takes a pair, and records its first event.
#[inline(always)]
fn record_begin(
    cache: &mut ContextCache,
    driver: &impl EventApi,
    target: Target,
    mode: Mode,
    sampling: CostSampling,
) -> Result<Box<GpuMeasurement>, CudaLoss> {
    let context = cache.context;
    // Before a pair is taken, and its epoch compared: see `Epoch`.
    if context.is_replaced(driver) {
        resolver::suspect(context);
        return Err(CudaLoss::ContextGone);
    }
    if !context.is_sound() {
        return Err(loss_of_faults(context));
    }
    let stream = target.handles.stream;
    if stream.is_default() {
        let is_implicit = target.named_by.is_implicit();
        return record_on_default_stream(cache, driver, (stream, is_implicit), mode, sampling);
    }
    record_in_context(cache, driver, stream, mode, sampling)
}

/// [`record_in_context`] on a default stream, which is that of the context that is current.
#[inline(never)]
fn record_on_default_stream(
    cache: &mut ContextCache,
    driver: &impl EventApi,
    (stream, is_implicit): (RawStream, bool),
    mode: Mode,
    sampling: CostSampling,
) -> Result<Box<GpuMeasurement>, CudaLoss> {
    let before = enter_own_context(driver, cache.context, is_implicit)?;
    let recorded = record_in_context(cache, driver, stream, mode, sampling);
    driver.leave_context(before);
    recorded
}

#[inline(always)]
fn record_in_context(
    cache: &mut ContextCache,
    driver: &impl EventApi,
    stream: RawStream,
    mode: Mode,
    sampling: CostSampling,
) -> Result<Box<GpuMeasurement>, CudaLoss> {
    let context = cache.context;
    let measurement = if is_graph(driver, context, stream, mode)? {
        take_for_graph(driver, context, stream)?
    } else {
        cache.take(driver)?
    };
    let pair = measurement.pair.as_ref().ok_or(CudaLoss::PoolEmpty)?;
    let begun = record_times::begin(sampling);
    let recorded = record(driver, context, pair.begin, stream, pair.is_graph);
    record_times::end(begun);
    match recorded {
        Ok(()) => Ok(measurement),
        Err(loss) => {
            cache.put_back(measurement);
            Err(loss)
        }
    }
}

/// Makes a pair for a scope that is captured.
#[cold]
#[inline(never)]
fn take_for_graph(
    driver: &impl EventApi,
    context: &'static Context,
    stream: RawStream,
) -> Result<Box<GpuMeasurement>, CudaLoss> {
    if !context.has_room_for_graph() {
        return Err(CudaLoss::TooManyCaptured);
    }
    let mut measurement = context
        .make_for_graph(driver)
        .map_err(|failed| loss_of(driver, context, failed.code, failed.call))?
        .ok_or(CudaLoss::PoolEmpty)?;
    measurement.capture = driver.capture_id(context.raw, stream).unwrap_or(0);
    Ok(measurement)
}
