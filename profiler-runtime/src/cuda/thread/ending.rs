//! The end of a scope that is to have a GPU time.

use std::mem::{self, ManuallyDrop};
use std::num::NonZero;

use super::record_times;
use super::recording::{enter_own_context, is_graph, loss_of_faults, record};
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
use crate::diagnostics::{DropReason, catch_own_panic, count_dropped, note_full_ring};
use crate::local::callers::CountedCall;
use crate::log::LogRequest;
use crate::own_cost;
use crate::stats::StatCell;
use crate::stream_key::{RawStream, StreamKey};
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

/// The request of a call that may be logged: `None` if it is not, in which case the compiler leaves out what is done with it.
type MaybeLog<'a> = Option<&'a mut Option<LogRequest>>;

/// A request that is dropped after the thread's state is released, if nothing has taken it: the destructor of a logger is user
/// code.
struct DeferredLog(Option<LogRequest>);

impl Drop for DeferredLog {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.is_some() {
            drop_log(&mut self.0);
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
    account(cell, log, |log| end_scope(serial, span, Some(log)));
}

/// Ends the GPU part of a scope of this thread that is not logged. `end` and `elapsed` are its times.
// All in one function, with arguments in registers.
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
        let sent = end_scope(serial, span, None);
        if sent != Sent::ToResolver {
            account_for(Some(cell), None, sent);
        }
    });
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
fn end_scope(serial: u64, span: CpuSpan, mut log: MaybeLog<'_>) -> Sent {
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
        let (cost, owner, log) = (opened.cost, &mut owner, log.as_deref_mut());
        let closed = match cost {
            Some(_) => end_sampled(&mut thread, opened, driver, owner, log),
            None => end_taken(&mut thread, opened, driver, owner, log, false),
        };
        match closed {
            Ok(sent) => return sent,
            Err(measurement) => measurement,
        }
    };
    wait_and_send(driver, measurement, log)
}

/// Ends a scope whose opening was sampled, and counts what measuring it has cost. A copy of [`end_taken`] out of line, so
/// that the usual one does not keep the results of the clock.
#[cold]
#[inline(never)]
fn end_sampled(
    thread: &mut GpuThread,
    opened: OpenGpuScope,
    driver: &Driver,
    owner: &mut StreamOwnership,
    log: MaybeLog<'_>,
) -> Closed {
    let cost = opened.cost.map_or(0, NonZero::get);
    let begun = now().saturating_sub(cost);
    let closed = end_taken(thread, opened, driver, owner, log, true);
    // The call that waits for the device has asked for that, so it is no cost of measuring.
    if closed.is_ok() {
        own_cost::note_sample(now().saturating_sub(begun));
    }
    closed
}

/// Ends a scope that was taken out of this thread's stack. Returns its measurement if it must wait for the device. Moves what
/// kept its stream alive to `owner`.
// For why it is not inlined in debug builds, see `open_scope`.
#[cfg_attr(debug_assertions, inline(never))]
#[cfg_attr(not(debug_assertions), inline(always))]
fn end_taken(
    thread: &mut GpuThread,
    opened: OpenGpuScope,
    driver: &Driver,
    owner: &mut StreamOwnership,
    log: MaybeLog<'_>,
    is_sampled: bool,
) -> Closed {
    let mode = opened.mode;
    let measurement = close(opened, thread.number, driver, owner, is_sampled);
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
        let (opened, log) = (opened.take()?, Some(&mut *log));
        Some(end_taken(thread, opened, driver, &mut owner, log, false))
    });
    if let Some(closed) = closed.flatten() {
        return closed.unwrap_or_else(|measurement| wait_and_send(driver, measurement, Some(log)));
    }
    // The thread is ending, and its ring is gone.
    if let Some(opened) = opened {
        opened.measurement.give_back();
    }
    Sent::Rejected
}

fn send_without_context(name: u32, span: CpuSpan, log: &mut Option<LogRequest>) -> Sent {
    let sent = state::with(|thread| {
        let mut measurement = GpuMeasurement::without(CudaLoss::NoContext);
        let scope = thread.unplaced_scope(name);
        measurement.begin(scope, false);
        measurement.set_enclosing(&Enclosing::NONE);
        measurement.span = span;
        send(thread, measurement, Some(log))
    });
    sent.unwrap_or(Sent::Rejected)
}

/// Records the second event, and completes the measurement.
#[inline(always)]
pub(super) fn close(
    opened: OpenGpuScope,
    number: u32,
    driver: &impl EventApi,
    owner: &mut StreamOwnership,
    is_sampled: bool,
) -> Box<GpuMeasurement> {
    let OpenGpuScope {
        mut measurement,
        mode,
        named_by,
        ownership,
        ..
    } = opened;
    // It owned nothing, so there is nothing to drop. To find that out would take some instructions.
    let _nothing = ManuallyDrop::new(mem::replace(owner, ownership));
    if let Some(pair) = &measurement.pair {
        let stream_key = &measurement.scope.stream_key;
        let named = (stream_key, named_by.is_implicit());
        let ended = record_end(number, driver, pair, named, mode, is_sampled);
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
    mut log: MaybeLog<'_>,
) -> Sent {
    if let Some(log) = &mut log
        && log.is_some()
    {
        measurement.log = log.take();
    }
    match ring::push(thread, measurement) {
        Ok(()) => Sent::ToResolver,
        Err(measurement) => take_back(measurement, log),
    }
}

#[cold]
#[inline(never)]
fn take_back(mut measurement: Box<GpuMeasurement>, log: MaybeLog<'_>) -> Sent {
    if let Some(log) = log {
        *log = measurement.log.take();
    }
    measurement.give_back();
    Sent::Rejected
}

/// Waits for the device and calls the logger, with the thread's state released. Then sends the measurement.
#[cold]
#[inline(never)]
fn wait_and_send(driver: &Driver, mut measurement: Box<GpuMeasurement>, log: MaybeLog<'_>) -> Sent {
    let mut none = None;
    let log = log.unwrap_or(&mut none);
    let wants_log = log.is_some();
    if let Some(pair) = measurement.pair {
        let waited = synchronous::log_now(driver, &measurement, pair, log);
        measurement.set_loss(waited.err());
    }
    let is_logged = wants_log && log.is_none();
    let mut measurement = Some(measurement);
    let sent = state::with(|thread| Some(send(thread, measurement.take()?, Some(log)))).flatten();
    let sent = sent.unwrap_or_else(|| {
        measurement.into_iter().for_each(GpuMeasurement::give_back);
        Sent::Rejected
    });
    match sent {
        Sent::Rejected if is_logged => Sent::RejectedAfterLog,
        sent => sent,
    }
}

/// Records the second event of a pair.
#[inline(always)]
fn record_end(
    number: u32,
    driver: &impl EventApi,
    pair: &Pair,
    (stream_key, is_implicit): (&StreamKey, bool),
    mode: Mode,
    is_sampled: bool,
) -> Result<(), CudaLoss> {
    let (context, stream) = (pair.context, stream_key.stream);
    if !context.is_sound() || pair.epoch != context.epoch() {
        return Err(loss_of_faults(context));
    }
    if stream.is_default() || pair.is_graph {
        let named = (stream_key, is_implicit);
        return record_specially(number, driver, pair, named, mode, is_sampled);
    }
    check_epoch(driver, pair)?;
    let begun = record_times::begin(is_sampled);
    let recorded = record(driver, context, pair.end, stream, false);
    record_times::end(begun);
    recorded?;
    // Another thread may begin a capture between any two calls. If the check came first, the capture could begin
    // after it and include the event, and the resolver's query of the event would invalidate the capture. Recording
    // adds no node to a graph. After the record, the answer that the stream does not capture means that the scope's
    // events are not part of a capture, or of one that has ended: querying them does no harm.
    check_capture(driver, pair, stream, mode)
}

/// [`record_end`] on a default stream, or in a graph.
#[inline(never)]
fn record_specially(
    number: u32,
    driver: &impl EventApi,
    pair: &Pair,
    (stream_key, is_implicit): (&StreamKey, bool),
    mode: Mode,
    is_sampled: bool,
) -> Result<(), CudaLoss> {
    let (context, stream) = (pair.context, stream_key.stream);
    if stream.is_per_thread() && number != stream_key.thread {
        return Err(CudaLoss::OtherThread);
    }
    // A context that is not current any more may have been destroyed, with its default stream.
    if is_implicit && driver.current_context() != Ok(context.raw) {
        return Err(CudaLoss::OtherContext);
    }
    check_epoch(driver, pair)?;
    let before = if stream.is_default() {
        enter_own_context(driver, context, is_implicit)?
    } else {
        None
    };
    let recorded = record_in_own_context(driver, pair, stream, mode, is_sampled);
    driver.leave_context(before);
    recorded
}

/// Checks that the context is the one in which the pair's events were made.
#[inline(always)]
fn check_epoch(driver: &impl EventApi, pair: &Pair) -> Result<(), CudaLoss> {
    let context = pair.context;
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
    Ok(())
}

fn record_in_own_context(
    driver: &impl EventApi,
    pair: &Pair,
    stream: RawStream,
    mode: Mode,
    is_sampled: bool,
) -> Result<(), CudaLoss> {
    // Recording in the legacy default stream would invalidate captures of blocking streams, and the event of a graph
    // can be recorded in a capture only.
    let checks_first = pair.is_graph || stream == RawStream::LEGACY;
    if checks_first {
        check_capture(driver, pair, stream, mode)?;
    }
    let begun = record_times::begin(is_sampled);
    let recorded = record(driver, pair.context, pair.end, stream, pair.is_graph);
    record_times::end(begun);
    recorded?;
    // See `record_end` for why it is checked last otherwise.
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
    log: Option<LogRequest>,
    end: impl FnOnce(&mut Option<LogRequest>) -> Sent,
) {
    let every = log.as_ref().map(|log| log.every);
    let mut log = DeferredLog(log);
    if let Some(log) = &mut log.0 {
        log.skipped = cell.map_or(0, |cell| cell.skipped.get());
    }
    let sent = end(&mut log.0);
    drop(log);
    if every.is_some() || sent != Sent::ToResolver {
        account_for(cell, every, sent);
    }
}

/// Counts what became of a measurement, and of a log entry.
#[cold]
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
