//! The beginning of a scope that is to have a GPU time.

use std::num::NonZero;

use super::context_cache::ContextCache;
use super::record_times;
use super::recording::{enter_own_context, is_graph, loss_of, record};
use super::scope::{GpuOptions, Mode, OpenGpuScope, StreamOwnership, TaskGpuScope};
use super::state::{self, GpuThread};
use crate::clock::now;
use crate::cuda::context::Context;
use crate::cuda::context::measurement::{GpuMeasurement, ScopeRef};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::{Code, Fault};
use crate::cuda::ffi::driver::Driver;
use crate::cuda::ffi::library;
use crate::cuda::health;
use crate::cuda::loss::CudaLoss;
use crate::cuda::resolver;
use crate::cuda::stream::target::{NamedBy, Target, target};
use crate::stream_key::RawStream;
use crate::sync::ReentrancyGuard;

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

/// Opens the GPU part of a scope on this thread.
#[inline(never)]
pub(crate) fn begin(serial: u64, name: u32, options: Option<&mut GpuOptions>) -> Begun {
    // Inside the profiler, a lock of the profiler's may be held. A measured allocator has only a CPU time there.
    let Some(driver) = library::driver().filter(|_| !ReentrancyGuard::is_entered()) else {
        return Begun::NoContext;
    };
    let begun = state::with(|thread| {
        if thread.is_sampled() {
            return begin_sampled(thread, driver, serial, name, options);
        }
        let opened = open_scope(thread, driver, serial, name, options, false, false);
        opened.err().unwrap_or(Begun::Opened)
    });
    begun.unwrap_or(Begun::NoContext)
}

/// Opens a scope in which the profiler's own cost is measured. A copy of [`open_scope`] out of line, so that the usual one
/// does not keep the results of the clock.
#[cold]
#[inline(never)]
fn begin_sampled(
    thread: &mut GpuThread,
    driver: &Driver,
    serial: u64,
    name: u32,
    options: Option<&mut GpuOptions>,
) -> Begun {
    let begun = now();
    match open_scope(thread, driver, serial, name, options, false, true) {
        Ok(opened) => {
            opened.cost = NonZero::new(now().saturating_sub(begun));
            Begun::Opened
        }
        Err(without) => without,
    }
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
        open(thread, driver, 0, name, options, true)?;
        let mut opened = thread.stack.pop_innermost().ok_or(Begun::NoContext)?;
        // The future may end on another thread, which does not keep this thread's current stream.
        if opened.ownership.is_thread_current()
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
pub(super) fn open<'t>(
    thread: &'t mut GpuThread,
    driver: &impl EventApi,
    serial: u64,
    name: u32,
    options: Option<&mut GpuOptions>,
    is_future: bool,
) -> Result<&'t mut OpenGpuScope, Begun> {
    let is_sampled = thread.is_sampled();
    open_scope(thread, driver, serial, name, options, is_future, is_sampled)
}

/// [`open`], in place.
// It is written in place, on the thread's stack: it is large, and copying what was just written would have to wait for
// the stores to complete.
//
// Not inlined in debug builds, where a frame holds all that is inlined, so that a sampled scope would have two copies of this
// on a stack that may be small.
#[cfg_attr(debug_assertions, inline(never))]
#[cfg_attr(not(debug_assertions), inline(always))]
fn open_scope<'t>(
    thread: &'t mut GpuThread,
    driver: &impl EventApi,
    serial: u64,
    name: u32,
    options: Option<&mut GpuOptions>,
    is_future: bool,
    is_sampled: bool,
) -> Result<&'t mut OpenGpuScope, Begun> {
    let (explicit, mode) = match options {
        Some(options) => (options.stream.as_mut(), options.mode),
        None => (None, Mode::Later),
    };
    let handles = explicit.as_deref().map(|explicit| explicit.handles);
    let target = target(thread, handles).ok_or(Begun::NoStream)?;
    let without = |thread, loss| open_without(thread, serial, name, loss).ok_or(Begun::NoContext);
    if thread.backoff.skips_scope() {
        return without(thread, CudaLoss::HostFunction);
    }
    let target = match target.in_context(driver) {
        Ok(target) => target.ok_or(Begun::NoContext)?,
        Err(code) => {
            let loss = without_context(thread, driver, code);
            return without(thread, loss);
        }
    };
    let number = thread.number();
    let Some(cache) = thread.context_cache(driver, target.handles.context) else {
        return without(thread, CudaLoss::TooManyContexts);
    };
    let context = cache.context;
    let mut outcome = record_begin(cache, driver, target, mode, is_sampled);
    let stream_key = state::stream_key(context, target.handles.stream, number);
    let enclosing = thread.stack.enclosing(stream_key, is_future);
    let key = thread.next_key();
    if let Ok(measurement) = &mut outcome {
        // The end of the scope writes this again. Touch the line early: the resolver's core last wrote it, and the
        // transfer overlaps the call.
        measurement.scope.key = key;
    } else if let Err(CudaLoss::HostFunction) = outcome {
        thread.backoff.extend();
    }
    let opened = thread.stack.push(serial).ok_or(Begun::NoContext)?;
    opened.scope = ScopeRef {
        key,
        stream_key,
        name,
        has_begun: outcome.is_ok(),
    };
    opened.outcome = outcome;
    opened.enclosing = enclosing;
    opened.mode = mode;
    opened.named_by = target.named_by;
    if target.named_by == NamedBy::Thread {
        opened.ownership = StreamOwnership::ThreadCurrent;
    } else if let Some(explicit) = explicit {
        let owned = explicit.owned.take();
        opened.ownership = owned.map_or(StreamOwnership::Borrowed, StreamOwnership::owned);
    }
    Ok(opened)
}

/// Returns why a scope has no GPU time if the driver does not tell which context is current.
#[cold]
#[inline(never)]
fn without_context(thread: &mut GpuThread, driver: &impl EventApi, code: Code) -> CudaLoss {
    if code.fault() == Fault::NotPermitted {
        health::warn_of_host_function();
        thread.backoff.extend();
        return CudaLoss::HostFunction;
    }
    health::warn_of_refused_call(driver, "cuCtxGetCurrent", code);
    CudaLoss::DriverRefused
}

/// Opens a scope that has no GPU time, and whose stream is not known.
#[cold]
#[inline(never)]
fn open_without(
    thread: &mut GpuThread,
    serial: u64,
    name: u32,
    loss: CudaLoss,
) -> Option<&mut OpenGpuScope> {
    let scope = thread.unplaced_scope(name);
    let opened = thread.stack.push(serial)?;
    opened.outcome = Err(loss);
    opened.scope = scope;
    Some(opened)
}

/// Takes a pair, and records its first event.
#[inline(always)]
fn record_begin(
    cache: &mut ContextCache,
    driver: &impl EventApi,
    target: Target,
    mode: Mode,
    is_sampled: bool,
) -> Result<Box<GpuMeasurement>, CudaLoss> {
    let context = cache.context;
    // Before a pair is taken, and its epoch compared: see `Epoch`.
    if context.is_replaced(driver) {
        resolver::suspect(context);
        return Err(CudaLoss::ContextGone);
    }
    if context.has_failed() {
        return Err(CudaLoss::ContextFailed);
    }
    if context.is_suspect() {
        return Err(CudaLoss::ContextGone);
    }
    let stream = target.handles.stream;
    let before = enter_own_context(driver, context, stream, target.named_by.is_implicit())?;
    let recorded = record_in_context(cache, driver, stream, mode, is_sampled);
    driver.leave_context(before);
    recorded
}

#[inline(always)]
fn record_in_context(
    cache: &mut ContextCache,
    driver: &impl EventApi,
    stream: RawStream,
    mode: Mode,
    is_sampled: bool,
) -> Result<Box<GpuMeasurement>, CudaLoss> {
    let context = cache.context;
    let measurement = if is_graph(driver, context, stream, mode)? {
        take_for_graph(driver, context, stream)?
    } else {
        cache.take(driver)?
    };
    let pair = measurement.pair.as_ref().ok_or(CudaLoss::PoolEmpty)?;
    let recorded = record_times::timed(is_sampled, || {
        record(driver, context, pair.begin, stream, pair.is_graph)
    });
    match recorded {
        Ok(()) => Ok(measurement),
        Err(failed) => {
            cache.put_back(measurement);
            Err(loss_of(driver, context, failed.code, failed.call))
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
