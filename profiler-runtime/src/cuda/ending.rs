//! The GPU's side of a scope: what the measured thread does when one closes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::driver::{Driver, RawContext};
use super::item::{Item, Line, Link, LogPart, Recorded, Span};
use super::loss::{self, CudaLoss};
use super::ring::{self, Pushed};
use super::scope::{Held, Mode, Opened, Running, in_own_context, is_graph, loss_of, record};
use super::thread::{self, Thread};
use super::{library, waiting};
use crate::clock::now;
use crate::entry::Attached;
use crate::health::{DropReason, count_dropped};
use crate::local::Busy;
use crate::own_cost;
use crate::stats::StatCell;

/// Closes the GPU's side of a scope of this thread.
#[inline(never)]
pub(crate) fn end(serial: u64, span: Span, log: Option<LogPart>) -> Pushed {
    // It was abandoned, and counted then; or the thread is ending.
    let Some(opened) = thread::with(|thread| thread.pop(serial)).flatten() else {
        return Pushed::Nothing;
    };
    // To wait for the device is what was asked for, no cost of measuring.
    let cost = opened.cost.filter(|_| !opened.waits());
    let Some(begun) = cost.map(|cost| now().saturating_sub(cost)) else {
        return finish(opened, span, log);
    };
    let pushed = finish(opened, span, log);
    own_cost::note_sample(now().saturating_sub(begun));
    pushed
}

/// Closes the GPU's side of any scope: records its end, and hands it to the resolver.
pub(crate) fn finish(opened: Opened, span: Span, log: Option<LogPart>) -> Pushed {
    let Opened {
        link,
        inside,
        apart,
        outcome,
        ..
    } = opened;
    let Some(driver) = library::driver() else {
        return Pushed::Nothing;
    };
    // Goes last: its destructor may be the stream's, which is the driver's business and not to be called with
    // anything of ours borrowed.
    let mut _held = Held::Elsewhere;
    let mut log = log;
    let wants_log = log.is_some();
    let outcome = outcome.and_then(|running| {
        let mode = running.mode;
        let (recorded, stream) = record_end(driver, running)?;
        _held = stream;
        if mode == Mode::Synchronous {
            return wait(driver, recorded, link, span, &mut log);
        }
        Ok(recorded)
    });
    let is_logged = wants_log && log.is_none();
    let item = Item {
        link,
        inside,
        apart,
        span,
        outcome,
        log,
    };
    match push(item) {
        Pushed::Full if is_logged => Pushed::FullAfterLog,
        pushed => pushed,
    }
}

/// Hands an item to the resolver; what cannot be is given back, with nothing of ours borrowed: a logger's destructor
/// is foreign code.
fn push(item: Item) -> Pushed {
    let mut item = Some(item);
    let pushed = thread::with(|thread| ring::push(thread, &mut item)).unwrap_or(Pushed::Full);
    let Some(Item { outcome, log, .. }) = item else {
        return pushed;
    };
    if let Ok(Recorded {
        pair,
        context,
        is_graph: false,
        ..
    }) = outcome
    {
        context.put_back(pair);
    }
    let _ = catch_unwind(AssertUnwindSafe(|| drop(log)));
    pushed
}

fn wait(
    driver: &Driver,
    recorded: Recorded,
    link: Link,
    span: Span,
    log: &mut Option<LogPart>,
) -> Result<Recorded, CudaLoss> {
    match waiting::log_now(driver, &recorded, link, span, log) {
        Ok(()) => Ok(recorded),
        Err(loss) => {
            let _ = thread::with(|thread| thread.put_back(recorded.context, recorded.pair));
            Err(loss)
        }
    }
}

fn record_end(driver: &Driver, running: Running) -> Result<(Recorded, Held), CudaLoss> {
    let context = running.context;
    match try_record_end(driver, &running) {
        Ok(()) => Ok((
            Recorded {
                pair: running.pair,
                context,
                is_graph: running.is_graph,
                is_implicit: running.is_implicit,
            },
            running.held,
        )),
        Err(loss) => {
            // Part of a graph that is not ours to take back.
            if !running.is_graph {
                let _ = thread::with(|thread| thread.put_back(context, running.pair));
            }
            Err(loss)
        }
    }
}

fn try_record_end(driver: &Driver, running: &Running) -> Result<(), CudaLoss> {
    let (context, stream) = (running.context, running.stream);
    if context.has_failed() {
        return Err(CudaLoss::ContextFailed);
    }
    if running.pair.life != context.life() || context.is_suspect() {
        return Err(CudaLoss::ContextGone);
    }
    if stream.is_per_thread() && thread::with(Thread::number) != Some(running.thread) {
        return Err(CudaLoss::OtherThread);
    }
    // The legacy stream of a context that is not current any more may be gone with it.
    if running.is_implicit && driver.current_context() != Ok(context.raw) {
        return Err(CudaLoss::OtherContext);
    }
    in_own_context(driver, context, stream, running.is_implicit, || {
        if is_graph(driver, context, stream, running.mode)? != running.is_graph {
            return Err(CudaLoss::Captured);
        }
        record(driver, context, running.pair.end, stream, running.is_graph)
            .map_err(|code| loss_of(driver, context, code, "cuEventRecord"))
    })
}

/// Hands on a scope that began where no context was current, and ended where one was.
pub(crate) fn end_without(name: u32, span: Span, log: Option<LogPart>) -> Pushed {
    let make = |thread: &mut Thread| {
        let link = Link {
            key: thread.next_key(),
            line: Line::NOWHERE,
            name,
            begin: None,
            is_future: false,
        };
        Item {
            link,
            inside: None,
            apart: None,
            span,
            outcome: Err(CudaLoss::NoStream),
            log,
        }
    };
    thread::with(make).map_or(Pushed::Full, push)
}

/// Whether a context is current on this thread, for a scope that began without one.
pub(crate) fn came_late() -> bool {
    // A thread that is ending has no way to the resolver any more, and inside the profiler there is none.
    let here = || !Busy::is_claimed() && thread::with(|_| ()).is_some();
    library::driver()
        .filter(|_| here())
        .and_then(|driver| driver.current_context().ok())
        .is_some_and(|context| context != RawContext::NONE)
}

/// Finishes a scope with what it brings along for its log entry, and keeps count of what could not be handed
/// on.
pub(crate) fn log(
    cell: Option<&'static StatCell>,
    log: Option<(u32, Attached)>,
    finish: impl FnOnce(Option<LogPart>) -> Pushed,
) {
    let every = log.as_ref().map(|(every, _)| *every);
    let part = log.map(|(every, attached)| LogPart {
        attached,
        every,
        skipped: cell.map_or(0, |cell| cell.skipped.get()),
    });
    let pushed = finish(part);
    let is_full = matches!(pushed, Pushed::Full | Pushed::FullAfterLog);
    if is_full {
        loss::count(CudaLoss::RingFull);
    }
    let Some(cell) = cell else {
        if let (Some(_), Pushed::Full | Pushed::Nothing) = (every, pushed) {
            count_dropped(DropReason::RingFull, 1);
        }
        return;
    };
    match (pushed, every) {
        (Pushed::Taken | Pushed::FullAfterLog, Some(_)) => cell.skipped.set(0),
        (Pushed::Full | Pushed::Nothing, Some(every)) => {
            cell.skipped.add(every.into());
            cell.ring_full.add(1);
        }
        (_, None) => {}
    }
    if is_full {
        cell.without_cuda.add(1);
    }
}
