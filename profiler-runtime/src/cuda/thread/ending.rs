//! The GPU's side of a scope: what the measured thread does when one closes.

use super::record_times;
use super::ring::{self, Pushed};
use super::scope::{
    Mode, OpenGpuScope, StreamOwnership, in_own_context, is_graph, loss_of, record,
};
use super::state::{self, GpuThread};
use super::synchronous;
use crate::clock::now;
use crate::cuda::context::measurement::{CpuSpan, Enclosing, GpuMeasurement, Pair};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::Fault;
use crate::cuda::ffi::driver::RawContext;
use crate::cuda::ffi::library;
use crate::cuda::loss::{self, CudaLoss};
use crate::cuda::resolver;
use crate::cuda::stream::target::target;
use crate::diagnostics::user_code;
use crate::diagnostics::{DropReason, count_dropped};
use crate::log::LogRequest;
use crate::own_cost;
use crate::stats::StatCell;
use crate::sync::ReentrancyGuard;

/// What is not to be dropped with anything of ours borrowed: the destructors of loggers are foreign code, and
/// those of streams the driver's business.
struct DeferredDrops<'a> {
    log: &'a mut Option<LogRequest>,
    held: StreamOwnership,
}

/// What became of a scope's end; the error is an item that waits for the device first.
type Closed = Result<Pushed, Box<GpuMeasurement>>;

/// Closes the GPU's side of a scope of this thread.
#[inline(never)]
pub(crate) fn end(serial: u64, span: CpuSpan, mut log: Option<LogRequest>) -> Pushed {
    let Some(driver) = library::driver() else {
        return Pushed::Nothing;
    };
    let mut rest = DeferredDrops::new(&mut log);
    let closed = state::with(|thread| {
        let number = thread.number();
        // It stays where it is until all has been read: a copy of it would take longer than all the rest.
        let opened = thread.innermost(serial)?;
        let begun = opened.cost.map(|cost| now().saturating_sub(cost.get()));
        let item = close(opened, number, driver, &span, &mut rest);
        let waits = waits(opened, &item);
        thread.forget_innermost();
        if waits {
            // To wait for the device is what was asked for, no cost of measuring.
            return Some(Err(item));
        }
        let pushed = push(thread, item, &mut rest);
        if let Some(begun) = begun {
            own_cost::note_sample(now().saturating_sub(begun));
        }
        Some(Ok(pushed))
    });
    // It was abandoned, and counted then; or the thread is ending.
    let closed: Closed = closed.flatten().unwrap_or(Ok(Pushed::Nothing));
    closed.unwrap_or_else(|item| wait(driver, item, &mut rest))
}

/// Closes the GPU's side of a future.
pub(crate) fn end_task(
    mut opened: OpenGpuScope,
    span: CpuSpan,
    mut log: Option<LogRequest>,
) -> Pushed {
    let Some(driver) = library::driver() else {
        return Pushed::Nothing;
    };
    let mut rest = DeferredDrops::new(&mut log);
    let closed = state::with(|thread| {
        let item = close(&mut opened, thread.number(), driver, &span, &mut rest);
        if waits(&opened, &item) {
            return Err(item);
        }
        Ok(push(thread, item, &mut rest))
    });
    if let Some(closed) = closed {
        return closed.unwrap_or_else(|item| wait(driver, item, &mut rest));
    }
    // The thread is ending, and has no way to the resolver any more.
    if let Ok(item) = opened.outcome {
        item.give_back();
    }
    Pushed::Full
}

impl<'a> DeferredDrops<'a> {
    #[inline]
    fn new(log: &'a mut Option<LogRequest>) -> Self {
        Self {
            log,
            held: StreamOwnership::Borrowed,
        }
    }
}

impl Drop for DeferredDrops<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.log.is_some() {
            let log = self.log.take();
            user_code::drop_value(log);
        }
    }
}

/// Records the end of a scope, and fills its item.
#[inline(always)]
fn close(
    opened: &mut OpenGpuScope,
    number: u32,
    driver: &impl EventApi,
    span: &CpuSpan,
    rest: &mut DeferredDrops<'_>,
) -> Box<GpuMeasurement> {
    rest.held = opened.held.take();
    let outcome = std::mem::replace(&mut opened.outcome, Err(CudaLoss::Abandoned));
    let mut item = outcome.unwrap_or_else(GpuMeasurement::without);
    if let Some(pair) = &item.pair {
        let ended = record_end(number, driver, pair, opened);
        item.set_loss(ended.err());
    }
    item.fill(&opened.scope, &opened.around, opened.is_fallback, span);
    item
}

/// Whether the device is to be waited for.
#[inline]
fn waits(opened: &OpenGpuScope, item: &GpuMeasurement) -> bool {
    opened.mode == Mode::Synchronous && item.loss.is_none()
}

/// Hands an item to the resolver; what cannot be is given back.
#[inline]
fn push(
    thread: &mut GpuThread,
    mut item: Box<GpuMeasurement>,
    rest: &mut DeferredDrops<'_>,
) -> Pushed {
    if rest.log.is_some() {
        item.log = rest.log.take();
    }
    match ring::push(thread, item) {
        Ok(()) => Pushed::Taken,
        Err(item) => refused(item, rest),
    }
}

#[cold]
fn refused(mut item: Box<GpuMeasurement>, rest: &mut DeferredDrops<'_>) -> Pushed {
    *rest.log = item.log.take();
    item.give_back();
    Pushed::Full
}

/// Waits for the device, with nothing of ours borrowed, and calls the logger.
#[cold]
fn wait(
    driver: &impl EventApi,
    mut item: Box<GpuMeasurement>,
    rest: &mut DeferredDrops<'_>,
) -> Pushed {
    let wants_log = rest.log.is_some();
    if let Some(pair) = item.pair {
        let waited = synchronous::log_now(driver, &item, pair, rest.log);
        item.set_loss(waited.err());
    }
    let is_logged = wants_log && rest.log.is_none();
    let mut item = Some(item);
    let pushed = state::with(|thread| Some(push(thread, item.take()?, rest))).flatten();
    let pushed = pushed.unwrap_or_else(|| {
        item.into_iter().for_each(GpuMeasurement::give_back);
        Pushed::Full
    });
    match pushed {
        Pushed::Full if is_logged => Pushed::FullAfterLog,
        pushed => pushed,
    }
}

#[inline(always)]
fn record_end(
    number: u32,
    driver: &impl EventApi,
    pair: &Pair,
    opened: &OpenGpuScope,
) -> Result<(), CudaLoss> {
    let (context, stream_key) = (pair.context, &opened.scope.stream_key);
    let (stream, is_implicit) = (stream_key.stream, opened.is_implicit);
    if context.has_failed() {
        return Err(CudaLoss::ContextFailed);
    }
    if pair.epoch != context.epoch() || context.is_suspect() {
        return Err(CudaLoss::ContextGone);
    }
    if stream.is_per_thread() && number != stream_key.thread {
        return Err(CudaLoss::OtherThread);
    }
    // The default stream of a context that is not current any more may be gone with it.
    if is_implicit && driver.current_context() != Ok(context.raw) {
        return Err(CudaLoss::OtherContext);
    }
    // The device may have been reset inside the scope.
    if context.is_replaced(driver) {
        resolver::suspect(context);
        return Err(CudaLoss::ContextGone);
    }
    // Since the first comparison the resolver may have found the reset too, and have taken the new number for the
    // context's: then the number is right again, and the event is one of before.
    if pair.epoch != context.epoch() {
        return Err(CudaLoss::ContextGone);
    }
    in_own_context(driver, context, stream, is_implicit, || {
        if is_graph(driver, context, stream, opened.mode)? != pair.is_graph {
            return Err(CudaLoss::Captured);
        }
        let is_sampled = opened.cost.is_some();
        let recorded = record_times::timed(is_sampled, || {
            record(driver, context, pair.end, stream, pair.is_graph)
        });
        recorded.map_err(|failed| loss_of(driver, context, failed.code, failed.call))
    })
}

/// Counts a call of a name for which no stream was named, where a context is current on its thread.
pub(crate) fn count_without_stream(cell: Option<&StatCell>, elapsed: i64) {
    let driver = library::driver().filter(|_| library::is_in_use());
    let (Some(cell), Some(driver)) = (cell, driver) else {
        return;
    };
    // Inside the profiler, and on a thread that is ending, the driver is left alone.
    let has_context = !ReentrancyGuard::is_entered()
        && state::with(|thread| thread.has_context(driver, elapsed)) == Some(true);
    if has_context {
        cell.without_stream.add(1);
    }
}

/// Whether a scope that began on this thread now, and named no stream itself, had none. The driver is not asked.
pub(crate) fn has_no_stream() -> bool {
    !library::is_in_use() || state::with(|thread| target(thread, None).is_none()) != Some(false)
}

/// Hands on a scope that began where no context was current, and ended where one was.
pub(crate) fn end_without_context(name: u32, span: CpuSpan, mut log: Option<LogRequest>) -> Pushed {
    let mut rest = DeferredDrops::new(&mut log);
    let handed = state::with(|thread| {
        let mut item = GpuMeasurement::without(CudaLoss::NoContext);
        item.fill(&thread.link_nowhere(name), &Enclosing::NONE, false, &span);
        push(thread, item, &mut rest)
    });
    handed.unwrap_or(Pushed::Full)
}

/// Whether a context is current on this thread, for a scope that began without one.
pub(crate) fn context_became_current() -> bool {
    // A thread that is ending has no way to the resolver any more, and inside the profiler there is none.
    let here =
        || !ReentrancyGuard::is_entered() && state::with(GpuThread::is_barred) == Some(false);
    library::driver()
        .filter(|_| here())
        .and_then(current_context)
        .is_some_and(|context| context != RawContext::NONE)
}

/// The current context, where the driver may be asked for it.
fn current_context(driver: &impl EventApi) -> Option<RawContext> {
    let context = driver.current_context();
    if context.is_err_and(|code| code.fault() == Fault::NotPermitted) {
        state::with(GpuThread::bar);
    }
    context.ok()
}

/// Why a scope could not be handed to the resolver.
#[cold]
fn why_refused() -> CudaLoss {
    if resolver::is_missing() {
        CudaLoss::NoResolver
    } else if state::with(|thread| thread.ring.is_none()) == Some(true) {
        CudaLoss::NoMemory
    } else {
        CudaLoss::RingFull
    }
}

/// Finishes a scope with what it brings along for its log entry, and keeps count of what could not be handed
/// on.
pub(crate) fn finish_scope(
    cell: Option<&'static StatCell>,
    mut log: Option<LogRequest>,
    finish: impl FnOnce(Option<LogRequest>) -> Pushed,
) {
    let every = log.as_ref().map(|log| log.every);
    if let Some(log) = &mut log {
        log.skipped = cell.map_or(0, |cell| cell.skipped.get());
    }
    let pushed = finish(log);
    let is_full = matches!(pushed, Pushed::Full | Pushed::FullAfterLog);
    let refused = is_full.then(why_refused);
    if let Some(reason) = refused {
        loss::count(reason);
    }
    if let (Some(cell), true) = (cell, is_full) {
        cell.without_cuda.add(1);
    }
    let Some(every) = every else {
        return;
    };
    match (pushed, cell) {
        (Pushed::Taken | Pushed::FullAfterLog, Some(cell)) => cell.skipped.set(0),
        (Pushed::Taken | Pushed::FullAfterLog, None) => {}
        (Pushed::Full | Pushed::Nothing, _)
            if resolver::is_missing() || library::is_shut_down() =>
        {
            count_dropped(DropReason::NoCollector, 1);
        }
        (Pushed::Full | Pushed::Nothing, _) if refused == Some(CudaLoss::NoMemory) => {
            count_dropped(DropReason::NoMemory, 1);
        }
        (Pushed::Full | Pushed::Nothing, Some(cell)) => {
            cell.skipped.add(every.into());
            cell.ring_full.add(1);
        }
        (Pushed::Full | Pushed::Nothing, None) => count_dropped(DropReason::RingFull, 1),
    }
}
