//! The GPU's side of a scope: what the measured thread does when one closes.

use super::code::Fault;
use super::driver::{Driver, RawContext};
use super::item::{Around, Item, Pair, Parcel, PendingLog, Span};
use super::loss::{self, CudaLoss};
use super::ring::{self, Pushed};
use super::scope::{Held, Mode, Opened, in_own_context, is_graph, loss_of, record};
use super::target::target;
use super::thread::{self, Thread};
use super::{library, records, resolver, waiting};
use crate::clock::now;
use crate::diagnostics::contain;
use crate::diagnostics::{DropReason, count_dropped};
use crate::log::LogRequest;
use crate::own_cost;
use crate::stats::StatCell;
use crate::sync::ReentrancyGuard;

/// What is not to be dropped with anything of ours borrowed: the destructors of loggers are foreign code, and
/// those of streams the driver's business.
struct Rest<'a> {
    log: &'a mut Option<PendingLog>,
    held: Held,
}

/// What became of a scope's end; the error is an item that waits for the device first.
type Closed = Result<Pushed, Parcel>;

/// Closes the GPU's side of a scope of this thread.
#[inline(never)]
pub(crate) fn end(serial: u64, span: Span, mut log: Option<PendingLog>) -> Pushed {
    let Some(driver) = library::driver() else {
        return Pushed::Nothing;
    };
    let mut rest = Rest::new(&mut log);
    let closed = thread::with(|thread| {
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
pub(crate) fn finish(mut opened: Opened, span: Span, mut log: Option<PendingLog>) -> Pushed {
    let Some(driver) = library::driver() else {
        return Pushed::Nothing;
    };
    let mut rest = Rest::new(&mut log);
    let closed = thread::with(|thread| {
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

impl<'a> Rest<'a> {
    #[inline]
    fn new(log: &'a mut Option<PendingLog>) -> Self {
        Self {
            log,
            held: Held::Elsewhere,
        }
    }
}

impl Drop for Rest<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.log.is_some() {
            let log = self.log.take();
            contain::discard(log);
        }
    }
}

/// Records the end of a scope, and fills its item.
#[inline(always)]
fn close(
    opened: &mut Opened,
    number: u32,
    driver: &Driver,
    span: &Span,
    rest: &mut Rest<'_>,
) -> Parcel {
    rest.held = opened.held.take();
    let outcome = std::mem::replace(&mut opened.outcome, Err(CudaLoss::Abandoned));
    let mut item = outcome.unwrap_or_else(Item::without);
    if let Some(pair) = &item.pair {
        let ended = record_end(number, driver, pair, opened);
        item.set_loss(ended.err());
    }
    item.fill(&opened.link, &opened.around, opened.is_fallback, span);
    item
}

/// Whether the device is to be waited for.
#[inline]
fn waits(opened: &Opened, item: &Item) -> bool {
    opened.mode == Mode::Synchronous && item.loss.is_none()
}

/// Hands an item to the resolver; what cannot be is given back.
#[inline]
fn push(thread: &mut Thread, mut item: Parcel, rest: &mut Rest<'_>) -> Pushed {
    if rest.log.is_some() {
        item.log = rest.log.take();
    }
    match ring::push(thread, item) {
        Ok(()) => Pushed::Taken,
        Err(item) => refused(item, rest),
    }
}

#[cold]
fn refused(mut item: Parcel, rest: &mut Rest<'_>) -> Pushed {
    *rest.log = item.log.take();
    item.give_back();
    Pushed::Full
}

/// Waits for the device, with nothing of ours borrowed, and calls the logger.
#[cold]
fn wait(driver: &Driver, mut item: Parcel, rest: &mut Rest<'_>) -> Pushed {
    let wants_log = rest.log.is_some();
    if let Some(pair) = item.pair {
        let waited = waiting::log_now(driver, &item, pair, rest.log);
        item.set_loss(waited.err());
    }
    let is_logged = wants_log && rest.log.is_none();
    let mut item = Some(item);
    let pushed = thread::with(|thread| Some(push(thread, item.take()?, rest))).flatten();
    let pushed = pushed.unwrap_or_else(|| {
        item.into_iter().for_each(Item::give_back);
        Pushed::Full
    });
    match pushed {
        Pushed::Full if is_logged => Pushed::FullAfterLog,
        pushed => pushed,
    }
}

#[inline(always)]
fn record_end(number: u32, driver: &Driver, pair: &Pair, opened: &Opened) -> Result<(), CudaLoss> {
    let (context, line) = (pair.context, &opened.link.line);
    let (stream, is_implicit) = (line.stream, opened.is_implicit);
    if context.has_failed() {
        return Err(CudaLoss::ContextFailed);
    }
    if pair.life != context.life() || context.is_suspect() {
        return Err(CudaLoss::ContextGone);
    }
    if stream.is_per_thread() && number != line.thread {
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
    if pair.life != context.life() {
        return Err(CudaLoss::ContextGone);
    }
    in_own_context(driver, context, stream, is_implicit, || {
        if is_graph(driver, context, stream, opened.mode)? != pair.is_graph {
            return Err(CudaLoss::Captured);
        }
        let is_sampled = opened.cost.is_some();
        let recorded = records::timed(is_sampled, || {
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
        && thread::with(|thread| thread.has_context(driver, elapsed)) == Some(true);
    if has_context {
        cell.without_stream.add(1);
    }
}

/// Whether a scope that began on this thread now, and named no stream itself, had none. The driver is not asked.
pub(crate) fn names_no_stream() -> bool {
    !library::is_in_use() || thread::with(|thread| target(thread, None).is_none()) != Some(false)
}

/// Hands on a scope that began where no context was current, and ended where one was.
pub(crate) fn end_without(name: u32, span: Span, mut log: Option<PendingLog>) -> Pushed {
    let mut rest = Rest::new(&mut log);
    let handed = thread::with(|thread| {
        let mut item = Item::without(CudaLoss::NoContext);
        item.fill(&thread.link_nowhere(name), &Around::NOTHING, false, &span);
        push(thread, item, &mut rest)
    });
    handed.unwrap_or(Pushed::Full)
}

/// Whether a context is current on this thread, for a scope that began without one.
pub(crate) fn came_late() -> bool {
    // A thread that is ending has no way to the resolver any more, and inside the profiler there is none.
    let here = || !ReentrancyGuard::is_entered() && thread::with(Thread::is_barred) == Some(false);
    library::driver()
        .filter(|_| here())
        .and_then(current_context)
        .is_some_and(|context| context != RawContext::NONE)
}

/// The current context, where the driver may be asked for it.
fn current_context(driver: &Driver) -> Option<RawContext> {
    let context = driver.current_context();
    if context.is_err_and(|code| code.fault() == Fault::NotPermitted) {
        thread::with(Thread::bar);
    }
    context.ok()
}

/// Why a scope could not be handed to the resolver.
#[cold]
fn why_refused() -> CudaLoss {
    if resolver::is_missing() {
        CudaLoss::NoResolver
    } else if thread::with(|thread| thread.ring.is_none()) == Some(true) {
        CudaLoss::NoMemory
    } else {
        CudaLoss::RingFull
    }
}

/// Finishes a scope with what it brings along for its log entry, and keeps count of what could not be handed
/// on.
pub(crate) fn log(
    cell: Option<&'static StatCell>,
    log: Option<(u32, LogRequest)>,
    finish: impl FnOnce(Option<PendingLog>) -> Pushed,
) {
    let every = log.as_ref().map(|(every, _)| *every);
    let part = log.map(|(every, request)| PendingLog {
        request,
        every,
        skipped: cell.map_or(0, |cell| cell.skipped.get()),
    });
    let pushed = finish(part);
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
        (Pushed::Full | Pushed::Nothing, _) if resolver::is_missing() || library::has_left() => {
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
