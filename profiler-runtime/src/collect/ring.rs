//! Each thread's ring of log entries: bounded, one producer, one consumer, never waited for.

use super::{collector, ledger};
use crate::diagnostics::user_code;
use crate::diagnostics::{DropReason, count_dropped};
use crate::local;
use crate::log::LogRecord;
use crate::log::LogRequest;
use crate::process::fork;
use crate::stats::StatCell;
use crate::switch::with_control;
use crate::sync::Lock;
use crate::sync::ReentrancyGuard;
use crate::sync::Rings;
use crate::sync::ring::Producer;

static RINGS: Rings<LogRecord> = Rings::new();

/// Records of threads that have no ring any more: calls in destructors of thread-locals.
static LATE: Lock<Vec<LogRecord>> = Lock::new(Vec::new());
const MAX_LATE: usize = 1024;

/// Hands a finished call to the collector, or counts that it could not be.
pub(crate) fn log(
    cell: Option<&'static StatCell>,
    id: u32,
    every: u32,
    (end, elapsed): (u64, i64),
    request: LogRequest,
) {
    // Whatever is called from here on, an allocator or a logger's destructor, is not measured: it would
    // find the ring in use.
    let busy = ReentrancyGuard::try_enter();
    // A forked child has no thread that would take it.
    if busy.is_none() || fork::is_child() {
        user_code::drop_value(request);
        return count_dropped(DropReason::NoCollector, 1);
    }
    let LogRequest { logger, step } = request;
    let skipped = cell.map_or(0, |cell| cell.skipped.get());
    let record = LogRecord {
        id,
        end,
        elapsed,
        step,
        every,
        skipped,
        logger,
    };
    // Moved through an option, since only one of the ways takes it.
    let mut record = Some(record);
    let outcome =
        local::with_ring(|ring| push(ring, &mut record)).unwrap_or_else(|| late(&mut record));
    // A logger that goes unused here is foreign code too.
    user_code::drop_value(record);
    match (outcome, cell) {
        (Outcome::Pushed, Some(cell)) => cell.skipped.set(0),
        (Outcome::Full, Some(cell)) => {
            cell.skipped.add(every.into());
            cell.ring_full.add(1);
        }
        (Outcome::Pushed, None) => {}
        (Outcome::Full, None) => count_dropped(DropReason::RingFull, 1),
        (Outcome::Nowhere, _) => count_dropped(DropReason::NoCollector, 1),
        (Outcome::NoMemory, _) => count_dropped(DropReason::NoMemory, 1),
    }
}

enum Outcome {
    Pushed,
    Full,
    /// There is no ring, and there cannot be one.
    Nowhere,
    /// There is no memory for a ring. The next call tries again.
    NoMemory,
}

fn push(ring: &mut Option<Producer<LogRecord>>, record: &mut Option<LogRecord>) -> Outcome {
    let ring = match ring {
        Some(ring) => ring,
        empty => match make() {
            Ok(made) => empty.insert(made),
            Err(outcome) => return outcome,
        },
    };
    let Some(taken) = record.take() else {
        return Outcome::Nowhere;
    };
    match ring.push(taken) {
        Ok(()) => {
            wake_at_half(ring);
            Outcome::Pushed
        }
        Err(rejected) => {
            *record = Some(rejected);
            collector::wake();
            Outcome::Full
        }
    }
}

/// The collector comes by itself often enough for an ordinary load; a thread that logs faster calls it.
fn wake_at_half(ring: &mut Producer<LogRecord>) {
    if ring.is_half_full() {
        collector::wake();
    }
}

#[cold]
fn make() -> Result<Producer<LogRecord>, Outcome> {
    let capacity = with_control(|control| control.settings.ring);
    if !collector::ensure_started() {
        return Err(Outcome::Nowhere);
    }
    RINGS.add(capacity, ()).ok_or(Outcome::NoMemory)
}

#[cold]
fn late(record: &mut Option<LogRecord>) -> Outcome {
    if !collector::ensure_started() {
        return Outcome::Nowhere;
    }
    let mut late = LATE.lock();
    if late.len() >= MAX_LATE {
        return Outcome::Full;
    }
    if late.try_reserve(1).is_err() {
        return Outcome::NoMemory;
    }
    late.extend(record.take());
    Outcome::Pushed
}

/// Moves what stands in the rings now to `batch`, and forgets the rings of threads that have ended.
pub(super) fn drain(batch: &mut Vec<LogRecord>) {
    RINGS.drain(batch, ledger::expect);
    let mut late = LATE.lock();
    ledger::expect(late.len());
    batch.append(&mut late);
}

/// Runs `f` with how many records wait in the rings, while nobody takes any of them.
pub(super) fn waiting<R>(f: impl FnOnce(usize) -> R) -> R {
    RINGS.with_waiting(|waiting| {
        let late = LATE.lock();
        f(waiting + late.len())
    })
}
