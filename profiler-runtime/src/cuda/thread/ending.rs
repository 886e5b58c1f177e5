//! The end of a scope that is to have a GPU time.

use std::mem::{self, ManuallyDrop};
use std::num::NonZero;

use profiler_cuda_sys::driver::Driver;
use profiler_host::diagnostics::catch_own_panic;
use profiler_host::sync::ReentrancyGuard;
use profiler_host::sync::ring::Producer;
use profiler_report::CudaLoss;

use super::accounting::{Sent, account, account_for};
use super::end_event::record_end;
use super::scope::{CostSampling, Mode, OpenGpuScope, StreamOwnership};
use super::state::{self, GpuThread};
use super::synchronous;
use crate::clock::now;
use crate::cuda::context::measurement::{Bound, CpuSpan, Enclosing, GpuMeasurement, ScopeRef};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::library;
use crate::cuda::resolver::{self, rings};
use crate::local::callers::CountedCall;
use crate::log_record::LogRequest;
use crate::own_cost;
use crate::stats::StatCell;

/// A measurement that is complete, or that must wait for the device first.
type EndOutcome = Result<Sent, Box<GpuMeasurement>>;

/// Who has the request of the call that ends.
// With `Nobody`, which is a constant where it is used, the compiler leaves out all that is done with a request.
enum LogOwner<'a> {
    /// The call is not logged.
    Nobody,
    /// The caller, until the request is taken; it drops one that is left. `None` if the call is not logged.
    Caller(&'a mut Option<LogRequest>),
}

impl LogOwner<'_> {
    #[inline(always)]
    fn reborrow(&mut self) -> LogOwner<'_> {
        match self {
            Self::Nobody => LogOwner::Nobody,
            Self::Caller(log) => LogOwner::Caller(log),
        }
    }
}

/// Ends the GPU part of a scope of this thread.
pub(crate) fn end(
    serial: u64,
    span: CpuSpan,
    cell: Option<&'static StatCell>,
    log: Option<LogRequest>,
) {
    account(cell, log, |log| {
        end_scope(serial, span, LogOwner::Caller(log))
    });
}

/// Ends the GPU part of a scope of this thread that is not logged. `end` and `elapsed` are its times.
// Inlines all of it, and has its arguments in registers.
#[inline(never)]
pub(crate) fn end_unlogged(
    serial: u64,
    (end, elapsed): (u64, i64),
    outermost: bool,
    cell: &'static StatCell,
) {
    catch_own_panic("a scope was closed", || {
        let span = CpuSpan {
            end,
            elapsed,
            outermost,
            call: CountedCall::NONE,
        };
        let sent = end_scope(serial, span, LogOwner::Nobody);
        if sent != Sent::ToResolver {
            account_for(Some(cell), None, sent);
        }
    });
}

/// Ends a segment of a scope of this thread.
#[cold]
#[inline(never)]
pub(super) fn end_segment(serial: u64, span: CpuSpan) -> Sent {
    end_scope(serial, span, LogOwner::Nobody)
}

/// Ends the GPU part of a future.
pub(crate) fn end_task(
    opened: OpenGpuScope,
    span: CpuSpan,
    cell: Option<&'static StatCell>,
    log: Option<LogRequest>,
) {
    account(cell, log, |log| end_opened(opened, span, log));
}

/// Reports a scope that began where no context was current, and ended where one was.
pub(crate) fn end_without_context(
    name: u32,
    span: CpuSpan,
    cell: Option<&'static StatCell>,
    log: Option<LogRequest>,
) {
    account(cell, log, |log| send_without_context(name, span, log));
}

#[cfg_attr(debug_assertions, inline(never))]
#[cfg_attr(not(debug_assertions), inline(always))]
fn end_scope(serial: u64, span: CpuSpan, mut log: LogOwner<'_>) -> Sent {
    // Dropped after the thread's state is released: the destructor of a stream may call the driver.
    let mut owner = StreamOwnership::Borrowed;
    let Some(driver) = library::driver() else {
        return Sent::Nothing;
    };
    let measurement = {
        // SAFETY: it is dropped at the end of this block.
        let Some(mut thread) = (unsafe { state::borrow() }) else {
            return Sent::Nothing;
        };
        // It may have been abandoned, and counted then.
        let Some(mut opened) = thread.stack.take(serial) else {
            return Sent::Nothing;
        };
        opened.set_span(span);
        let (cost, owner, log) = (opened.cost, &mut owner, log.reborrow());
        let closed = match cost {
            Some(_) => end_sampled(&mut thread, opened, driver, owner, log),
            None => end_taken(&mut thread, opened, driver, owner, log, CostSampling::Off),
        };
        match closed {
            Ok(sent) => return sent,
            Err(measurement) => measurement,
        }
    };
    wait_and_send(driver, measurement, log)
}

/// Ends a scope whose opening was sampled, and counts what measuring it has cost.
// Has a copy of `end_taken` of its own, out of line, so that the usual copy keeps no readings of the clock.
#[cold]
#[inline(never)]
fn end_sampled(
    thread: &mut GpuThread,
    opened: OpenGpuScope,
    driver: &Driver,
    owner: &mut StreamOwnership,
    log: LogOwner<'_>,
) -> EndOutcome {
    let cost = opened.cost.map_or(0, NonZero::get);
    let begun = now().saturating_sub(cost);
    let closed = end_taken(thread, opened, driver, owner, log, CostSampling::On);
    // A call that waits for the device has asked to: that time is no cost of measuring.
    if closed.is_ok() {
        own_cost::GPU_SCOPES.note(now().saturating_sub(begun));
    }
    closed
}

/// Ends a scope that was taken out of this thread's stack. Returns its measurement if it must wait for the device. Moves what
/// kept its stream alive to `owner`.
// Not inlined in debug builds, where each copy takes space in the frame of its caller, on a stack that may be small.
#[cfg_attr(debug_assertions, inline(never))]
#[cfg_attr(not(debug_assertions), inline(always))]
fn end_taken(
    thread: &mut GpuThread,
    opened: OpenGpuScope,
    driver: &Driver,
    owner: &mut StreamOwnership,
    log: LogOwner<'_>,
    sampling: CostSampling,
) -> EndOutcome {
    let mode = opened.mode;
    let measurement = close(opened, thread.number, driver, owner, sampling);
    if must_wait(mode, &measurement) {
        return Err(measurement);
    }
    Ok(send(thread, measurement, log))
}

fn end_opened(mut opened: OpenGpuScope, span: CpuSpan, log: &mut Option<LogRequest>) -> Sent {
    let mut owner = StreamOwnership::Borrowed;
    let Some(driver) = library::driver() else {
        return Sent::Nothing;
    };
    opened.set_span(span);
    let mut opened = Some(opened);
    let closed = state::with(|thread| {
        let (opened, log) = (opened.take()?, LogOwner::Caller(&mut *log));
        Some(end_taken(
            thread,
            opened,
            driver,
            &mut owner,
            log,
            CostSampling::Off,
        ))
    });
    if let Some(closed) = closed.flatten() {
        return closed.unwrap_or_else(|measurement| {
            wait_and_send(driver, measurement, LogOwner::Caller(log))
        });
    }
    // The thread is ending, and its ring is gone.
    if let Some(opened) = opened {
        opened.measurement.give_back();
    }
    Sent::Rejected
}

fn send_without_context(name: u32, span: CpuSpan, log: &mut Option<LogRequest>) -> Sent {
    let sent = state::with(|thread| {
        let scope = thread.unplaced_scope(name);
        send_without_events(thread, scope, span, Err(CudaLoss::NoContext), log)
    });
    sent.unwrap_or(Sent::Rejected)
}

/// Sends the end of a call that has no events: because streams were bound, or for a reason.
#[cold]
#[inline(never)]
pub(super) fn send_without_events(
    thread: &mut GpuThread,
    scope: ScopeRef,
    span: CpuSpan,
    bound: Result<Bound, CudaLoss>,
    log: &mut Option<LogRequest>,
) -> Sent {
    let loss = bound.as_ref().err().copied();
    let mut measurement = {
        // Do not attribute the memory to the program's scopes.
        let _reentrancy = ReentrancyGuard::try_enter();
        GpuMeasurement::without(loss.unwrap_or(CudaLoss::Abandoned))
    };
    measurement.set_loss(loss);
    *measurement.bound = bound.ok();
    measurement.begin(scope, false);
    measurement.set_enclosing(&Enclosing::NONE);
    measurement.span = span;
    send(thread, measurement, LogOwner::Caller(log))
}

/// Records the second event, and completes the measurement.
#[inline(always)]
pub(super) fn close(
    opened: OpenGpuScope,
    number: u32,
    driver: &impl EventApi,
    owner: &mut StreamOwnership,
    sampling: CostSampling,
) -> Box<GpuMeasurement> {
    let OpenGpuScope {
        mut measurement,
        mode,
        named_by,
        ownership,
        ..
    } = opened;
    // `owner` had nothing to drop before; without this, the compiler would check for that.
    let _nothing = ManuallyDrop::new(mem::replace(owner, ownership));
    if let Some(pair) = &measurement.pair {
        let stream_key = &measurement.scope.stream_key;
        let named = (stream_key, named_by.is_implicit());
        let ended = record_end(number, driver, pair, named, mode, sampling);
        measurement.set_loss(ended.err());
    }
    measurement
}

/// Returns `true` if the call asked to wait for the device.
#[inline]
pub(super) fn must_wait(mode: Mode, measurement: &GpuMeasurement) -> bool {
    mode == Mode::Synchronous && measurement.loss.is_none()
}

/// Sends a measurement to the resolver, or gives it back.
#[inline(always)]
fn send(
    thread: &mut GpuThread,
    mut measurement: Box<GpuMeasurement>,
    mut log: LogOwner<'_>,
) -> Sent {
    if let LogOwner::Caller(log) = &mut log
        && log.is_some()
    {
        measurement.log = log.take();
    }
    match push(thread, measurement) {
        Ok(()) => Sent::ToResolver,
        Err(measurement) => take_back(measurement, log),
    }
}

/// Sends a measurement to the resolver.
///
/// # Errors
///
/// Returns the measurement if the thread's ring is full or could not be created.
#[inline(always)]
fn push(
    thread: &mut GpuThread,
    measurement: Box<GpuMeasurement>,
) -> Result<(), Box<GpuMeasurement>> {
    let ring = match &mut thread.ring {
        Some(ring) => ring,
        empty => match rings::create() {
            Some(created) => empty.insert(created),
            None => return Err(measurement),
        },
    };
    let pushed = ring
        .push_early_from(measurement, |measurement| measurement)
        .or_else(|measurement| push_late(ring, measurement));
    resolver::wake_if_dozing();
    pushed
}

/// [`push`] if half of the ring is waiting.
#[cold]
#[inline(never)]
fn push_late(
    ring: &mut Producer<Box<GpuMeasurement>>,
    measurement: Box<GpuMeasurement>,
) -> Result<(), Box<GpuMeasurement>> {
    let pushed = ring.push(measurement);
    if pushed.is_err() || ring.is_half_full() {
        resolver::wake();
    }
    pushed
}

#[cold]
#[inline(never)]
fn take_back(mut measurement: Box<GpuMeasurement>, log: LogOwner<'_>) -> Sent {
    if let LogOwner::Caller(log) = log {
        *log = measurement.log.take();
    }
    measurement.give_back();
    Sent::Rejected
}

/// Waits for the device and calls the logger, with the thread's state released. Then sends the measurement.
#[cold]
#[inline(never)]
fn wait_and_send(driver: &Driver, mut measurement: Box<GpuMeasurement>, log: LogOwner<'_>) -> Sent {
    let mut none = None;
    let log = match log {
        LogOwner::Nobody => &mut none,
        LogOwner::Caller(log) => log,
    };
    let wants_log = log.is_some();
    if let Some(pair) = measurement.pair {
        let waited = synchronous::log_now(driver, &measurement, pair, log);
        measurement.set_loss(waited.err());
    }
    let is_logged = wants_log && log.is_none();
    let mut measurement = Some(measurement);
    let sent = state::with(|thread| Some(send(thread, measurement.take()?, LogOwner::Caller(log))))
        .flatten();
    let sent = sent.unwrap_or_else(|| {
        measurement.into_iter().for_each(GpuMeasurement::give_back);
        Sent::Rejected
    });
    match sent {
        Sent::Rejected if is_logged => Sent::RejectedAfterLog,
        sent => sent,
    }
}
