//! The end of a scope that is to have a GPU time.

use std::num::NonZero;

use super::record_times;
use super::recording::{enter_own_context, is_graph, loss_of, record};
use super::ring;
use super::scope::{Mode, OpenGpuScope, StreamOwnership};
use super::state::{self, GpuThread};
use super::synchronous;
use crate::clock::now;
use crate::cuda::context::measurement::{CpuSpan, Enclosing, GpuMeasurement, Pair};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::Fault;
use crate::cuda::ffi::driver::{Driver, RawContext};
use crate::cuda::ffi::library;
use crate::cuda::loss::{self, CudaLoss};
use crate::cuda::resolver;
use crate::cuda::stream::target::target;
use crate::diagnostics::user_code;
use crate::diagnostics::{DropReason, count_dropped, note_full_ring};
use crate::log::LogRequest;
use crate::own_cost;
use crate::stats::StatCell;
use crate::stream_key::RawStream;
use crate::sync::ReentrancyGuard;

/// The destination of a measurement at the end of its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// The resolver gets it.
    ToResolver,
    /// The thread's ring was full or does not exist.
    Rejected,
    /// As `Rejected`, but the log entry has reached its logger.
    RejectedAfterLog,
    /// There was none: the scope had been abandoned, or the driver has shut down.
    Nothing,
}

/// A measurement that is complete, or that must wait for the device first.
type Closed = Result<Sent, Box<GpuMeasurement>>;

/// Values that are dropped after the thread's state is released: the destructor of a logger is user code, and that of a
/// stream may call the driver.
pub(super) struct DeferredDrops<'a> {
    log: &'a mut Option<LogRequest>,
    pub(super) ownership: StreamOwnership,
}

impl<'a> DeferredDrops<'a> {
    #[inline]
    pub(super) fn new(log: &'a mut Option<LogRequest>) -> Self {
        Self {
            log,
            ownership: StreamOwnership::Borrowed,
        }
    }
}

impl Drop for DeferredDrops<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.log.is_some() {
            drop_log(self.log);
        }
    }
}

#[cold]
#[inline(never)]
fn drop_log(log: &mut Option<LogRequest>) {
    user_code::drop_value(log.take());
}

/// Ends the GPU part of a scope of this thread.
pub(crate) fn end(
    serial: u64,
    span: CpuSpan,
    cell: Option<&'static StatCell>,
    log: Option<LogRequest>,
) {
    account(cell, log, |log| end_scope(serial, &span, log));
}

/// Ends the GPU part of a future.
pub(crate) fn end_task(
    opened: OpenGpuScope,
    span: CpuSpan,
    cell: Option<&'static StatCell>,
    log: Option<LogRequest>,
) {
    account(cell, log, |log| end_opened(opened, &span, log));
}

/// Reports a scope that began where no context was current, and ended where one was.
pub(crate) fn end_without_context(
    name: u32,
    span: CpuSpan,
    cell: Option<&'static StatCell>,
    log: Option<LogRequest>,
) {
    account(cell, log, |log| send_without_context(name, &span, log));
}

#[inline(never)]
fn end_scope(serial: u64, span: &CpuSpan, log: &mut Option<LogRequest>) -> Sent {
    let mut drops = DeferredDrops::new(log);
    let Some(driver) = library::driver() else {
        return Sent::Nothing;
    };
    let closed = state::with(|thread| {
        if let Some(cost) = thread.stack.innermost(serial)?.cost {
            return end_sampled(thread, serial, driver, span, &mut drops, cost);
        }
        end_innermost(thread, serial, driver, span, &mut drops, false)
    });
    // Without a scope it was abandoned, and counted then; or the thread is ending.
    let closed: Closed = closed.flatten().unwrap_or(Ok(Sent::Nothing));
    closed.unwrap_or_else(|measurement| wait_and_send(driver, measurement, &mut drops))
}

/// Ends a scope whose opening took `cost`, and counts what measuring it has cost. A copy of [`end_innermost`] out of line,
/// so that the usual one does not keep the results of the clock.
#[cold]
#[inline(never)]
fn end_sampled(
    thread: &mut GpuThread,
    serial: u64,
    driver: &Driver,
    span: &CpuSpan,
    drops: &mut DeferredDrops<'_>,
    cost: NonZero<u64>,
) -> Option<Closed> {
    let begun = now().saturating_sub(cost.get());
    let closed = end_innermost(thread, serial, driver, span, drops, true)?;
    // The call that waits for the device has asked for that, so it is no cost of measuring.
    if closed.is_ok() {
        own_cost::note_sample(now().saturating_sub(begun));
    }
    Some(closed)
}

/// Ends a scope of this thread. Returns `None` if it is not open.
// For why it is not inlined in debug builds, see `open_scope`.
#[cfg_attr(debug_assertions, inline(never))]
#[cfg_attr(not(debug_assertions), inline(always))]
fn end_innermost(
    thread: &mut GpuThread,
    serial: u64,
    driver: &Driver,
    span: &CpuSpan,
    drops: &mut DeferredDrops<'_>,
    is_sampled: bool,
) -> Option<Closed> {
    let number = thread.number();
    // Read in place: a copy of it would take longer than everything else here.
    let opened = thread.stack.innermost(serial)?;
    let measurement = close(opened, number, driver, span, drops, is_sampled);
    let must_wait = must_wait(opened, &measurement);
    thread.stack.remove_innermost();
    if must_wait {
        return Some(Err(measurement));
    }
    Some(Ok(send(thread, measurement, drops)))
}

fn end_opened(mut opened: OpenGpuScope, span: &CpuSpan, log: &mut Option<LogRequest>) -> Sent {
    let mut drops = DeferredDrops::new(log);
    let Some(driver) = library::driver() else {
        return Sent::Nothing;
    };
    let closed = state::with(|thread| {
        let measurement = close(
            &mut opened,
            thread.number(),
            driver,
            span,
            &mut drops,
            false,
        );
        if must_wait(&opened, &measurement) {
            return Err(measurement);
        }
        Ok(send(thread, measurement, &mut drops))
    });
    if let Some(closed) = closed {
        return closed.unwrap_or_else(|measurement| wait_and_send(driver, measurement, &mut drops));
    }
    // The thread is ending, and its ring is gone.
    if let Ok(measurement) = opened.outcome {
        measurement.give_back();
    }
    Sent::Rejected
}

fn send_without_context(name: u32, span: &CpuSpan, log: &mut Option<LogRequest>) -> Sent {
    let mut drops = DeferredDrops::new(log);
    let sent = state::with(|thread| {
        let mut measurement = GpuMeasurement::without(CudaLoss::NoContext);
        let scope = thread.unplaced_scope(name);
        measurement.fill(&scope, &Enclosing::NONE, false, span);
        send(thread, measurement, &mut drops)
    });
    sent.unwrap_or(Sent::Rejected)
}

/// Records the second event, and completes the measurement.
#[inline(always)]
pub(super) fn close(
    opened: &mut OpenGpuScope,
    number: u32,
    driver: &impl EventApi,
    span: &CpuSpan,
    drops: &mut DeferredDrops<'_>,
    is_sampled: bool,
) -> Box<GpuMeasurement> {
    drops.ownership = opened.ownership.take();
    let outcome = std::mem::replace(&mut opened.outcome, Err(CudaLoss::Abandoned));
    let mut measurement = outcome.unwrap_or_else(GpuMeasurement::without);
    if let Some(pair) = &measurement.pair {
        let ended = record_end(number, driver, pair, opened, is_sampled);
        measurement.set_loss(ended.err());
    }
    measurement.fill(
        &opened.scope,
        &opened.enclosing,
        opened.named_by.is_fallback(),
        span,
    );
    measurement
}

/// Returns `true` if the call asked to wait for the device.
#[inline]
pub(super) fn must_wait(opened: &OpenGpuScope, measurement: &GpuMeasurement) -> bool {
    opened.mode == Mode::Synchronous && measurement.loss.is_none()
}

/// Sends a measurement to the resolver, or gives it back.
#[inline(always)]
fn send(
    thread: &mut GpuThread,
    mut measurement: Box<GpuMeasurement>,
    drops: &mut DeferredDrops<'_>,
) -> Sent {
    if drops.log.is_some() {
        measurement.log = drops.log.take();
    }
    match ring::push(thread, measurement) {
        Ok(()) => Sent::ToResolver,
        Err(measurement) => take_back(measurement, drops),
    }
}

#[cold]
fn take_back(mut measurement: Box<GpuMeasurement>, drops: &mut DeferredDrops<'_>) -> Sent {
    *drops.log = measurement.log.take();
    measurement.give_back();
    Sent::Rejected
}

/// Waits for the device and calls the logger, with the thread's state released. Then sends the measurement.
#[cold]
fn wait_and_send(
    driver: &Driver,
    mut measurement: Box<GpuMeasurement>,
    drops: &mut DeferredDrops<'_>,
) -> Sent {
    let wants_log = drops.log.is_some();
    if let Some(pair) = measurement.pair {
        let waited = synchronous::log_now(driver, &measurement, pair, drops.log);
        measurement.set_loss(waited.err());
    }
    let is_logged = wants_log && drops.log.is_none();
    let mut measurement = Some(measurement);
    let sent = state::with(|thread| Some(send(thread, measurement.take()?, drops))).flatten();
    let sent = sent.unwrap_or_else(|| {
        measurement.into_iter().for_each(GpuMeasurement::give_back);
        Sent::Rejected
    });
    match sent {
        Sent::Rejected if is_logged => Sent::RejectedAfterLog,
        sent => sent,
    }
}

#[inline(always)]
fn record_end(
    number: u32,
    driver: &impl EventApi,
    pair: &Pair,
    opened: &OpenGpuScope,
    is_sampled: bool,
) -> Result<(), CudaLoss> {
    let (context, stream_key) = (pair.context, &opened.scope.stream_key);
    let (stream, is_implicit) = (stream_key.stream, opened.named_by.is_implicit());
    if context.has_failed() {
        return Err(CudaLoss::ContextFailed);
    }
    if pair.epoch != context.epoch() || context.is_suspect() {
        return Err(CudaLoss::ContextGone);
    }
    if stream.is_per_thread() && number != stream_key.thread {
        return Err(CudaLoss::OtherThread);
    }
    // A context that is not current any more may have been destroyed, with its default stream.
    if is_implicit && driver.current_context() != Ok(context.raw) {
        return Err(CudaLoss::OtherContext);
    }
    // The device may have been reset inside the scope.
    if context.is_replaced(driver) {
        resolver::suspect(context);
        return Err(CudaLoss::ContextGone);
    }
    // Again, after the id: since the first comparison the resolver may have advanced the epoch, and another thread may
    // have adopted the new id. The id is then right, and the event is one of the epoch before. See `Epoch`.
    if pair.epoch != context.epoch() {
        return Err(CudaLoss::ContextGone);
    }
    let before = enter_own_context(driver, context, stream, is_implicit)?;
    let recorded = record_in_context(driver, pair, stream, opened.mode, is_sampled);
    driver.leave_context(before);
    recorded
}

#[inline(always)]
fn record_in_context(
    driver: &impl EventApi,
    pair: &Pair,
    stream: RawStream,
    mode: Mode,
    is_sampled: bool,
) -> Result<(), CudaLoss> {
    let context = pair.context;
    // Recording in the legacy default stream would invalidate captures of blocking streams, and the event of a graph
    // can be recorded in a capture only.
    let checks_first = pair.is_graph || stream == RawStream::LEGACY;
    if checks_first {
        check_capture_first(driver, pair, stream, mode)?;
    }
    let recorded = record_times::timed(is_sampled, || {
        record(driver, context, pair.end, stream, pair.is_graph)
    });
    recorded.map_err(|failed| loss_of(driver, context, failed.code, failed.call))?;
    // Another thread may begin a capture between any two calls. If the check came first, the capture could begin
    // after it and include the event, and the resolver's query of the event would invalidate the capture. Recording
    // adds no node to a graph. After the record, the answer that the stream does not capture means that the scope's
    // events are not part of a capture, or of one that has ended: querying them does no harm.
    if checks_first {
        Ok(())
    } else {
        check_capture(driver, pair, stream, mode)
    }
}

/// Checks that the end of a scope is part of a graph if its beginning is.
#[inline(always)]
fn check_capture(
    driver: &impl EventApi,
    pair: &Pair,
    stream: RawStream,
    mode: Mode,
) -> Result<(), CudaLoss> {
    match is_graph(driver, pair.context, stream, mode)? {
        is_graph if is_graph == pair.is_graph => Ok(()),
        _ => Err(CudaLoss::Captured),
    }
}

/// [`check_capture`] out of line, so that the usual order of calls is compiled without a second copy.
#[inline(never)]
fn check_capture_first(
    driver: &impl EventApi,
    pair: &Pair,
    stream: RawStream,
    mode: Mode,
) -> Result<(), CudaLoss> {
    check_capture(driver, pair, stream, mode)
}

/// Counts a call of a name for which no stream is named, if a context is current on its thread.
pub(crate) fn count_without_stream(cell: Option<&StatCell>, elapsed: i64) {
    let driver = library::driver().filter(|_| library::is_in_use());
    let (Some(cell), Some(driver)) = (cell, driver) else {
        return;
    };
    // The driver is not called inside the profiler, or on a thread that is ending.
    let has_context = !ReentrancyGuard::is_entered()
        && state::with(|thread| thread.has_context(driver, elapsed)) == Some(true);
    if has_context {
        cell.without_stream.add(1);
    }
}

/// Returns `true` if a scope on this thread that names no stream itself has none. Does not call the driver.
pub(crate) fn has_no_stream() -> bool {
    !library::is_in_use() || state::with(|thread| target(thread, None).is_none()) != Some(false)
}

/// Returns `true` if a context is current on this thread, at the end of a scope that began without one.
pub(crate) fn context_became_current() -> bool {
    // The driver is not called inside the profiler, or on a thread that is ending.
    let may_call = || {
        !ReentrancyGuard::is_entered()
            && state::with(|thread| thread.backoff.skips_scope()) == Some(false)
    };
    library::driver()
        .filter(|_| may_call())
        .and_then(current_context)
        .is_some_and(|context| context != RawContext::NONE)
}

fn current_context(driver: &Driver) -> Option<RawContext> {
    let context = driver.current_context();
    if context.is_err_and(|code| code.fault() == Fault::NotPermitted) {
        state::with(|thread| thread.backoff.extend());
    }
    context.ok()
}

/// Returns why a measurement was rejected.
#[cold]
fn rejection() -> CudaLoss {
    if resolver::is_missing() {
        CudaLoss::NoResolver
    } else if state::with(|thread| thread.ring.is_none()) == Some(true) {
        CudaLoss::NoMemory
    } else {
        CudaLoss::RingFull
    }
}

/// Ends a scope with `end`, and counts what did not reach the resolver: the GPU time, and the log entry that waits for
/// it.
#[inline(always)]
fn account(
    cell: Option<&'static StatCell>,
    mut log: Option<LogRequest>,
    end: impl FnOnce(&mut Option<LogRequest>) -> Sent,
) {
    let every = log.as_ref().map(|log| log.every);
    if let Some(log) = &mut log {
        log.skipped = cell.map_or(0, |cell| cell.skipped.get());
    }
    let sent = end(&mut log);
    // `end` has taken the request or dropped it.
    std::mem::forget(log);
    if every.is_some() || sent != Sent::ToResolver {
        account_for(cell, every, sent);
    }
}

/// Counts what became of a measurement, and of a log entry.
#[inline(never)]
fn account_for(cell: Option<&'static StatCell>, every: Option<u32>, sent: Sent) {
    let is_rejected = matches!(sent, Sent::Rejected | Sent::RejectedAfterLog);
    let rejection = is_rejected.then(rejection);
    if let Some(reason) = rejection {
        loss::count(reason);
    }
    if let (Some(cell), true) = (cell, is_rejected) {
        cell.without_cuda.add(1);
    }
    if let Some(every) = every {
        account_log(cell, every, sent, rejection);
    }
}

/// Counts a log entry that did not reach the resolver, or clears the count of those that did not before.
fn account_log(
    cell: Option<&'static StatCell>,
    every: u32,
    sent: Sent,
    rejection: Option<CudaLoss>,
) {
    match (sent, cell) {
        (Sent::ToResolver | Sent::RejectedAfterLog, Some(cell)) => cell.skipped.set(0),
        (Sent::ToResolver | Sent::RejectedAfterLog, None) => {}
        (Sent::Rejected | Sent::Nothing, _)
            if resolver::is_missing() || library::is_shut_down() =>
        {
            count_dropped(DropReason::NoCollector, 1);
        }
        // The scope was abandoned, or its thread is ending: no GPU time will ever arrive for the entry.
        (Sent::Nothing, cell) => {
            if let Some(cell) = cell {
                cell.skipped.add(every.into());
            }
            count_dropped(DropReason::NoCudaTime, 1);
        }
        (Sent::Rejected, _) if rejection == Some(CudaLoss::NoMemory) => {
            count_dropped(DropReason::NoMemory, 1);
        }
        (Sent::Rejected, Some(cell)) => {
            cell.skipped.add(every.into());
            cell.ring_full.add(1);
            note_full_ring();
        }
        (Sent::Rejected, None) => count_dropped(DropReason::RingFull, 1),
    }
}
