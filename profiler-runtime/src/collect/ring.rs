//! The rings of log records: bounded, with one producer and one consumer each, and never waited for.

use profiler_host::sync::{Lock, Rings};

use super::gpu_entries::GpuEntry;
use super::ledger;
use crate::log_record::LogRecord;

pub(super) static RINGS: Rings<LogRecord> = Rings::new();
/// The resolver's ring. After a panic of the resolver there may be two.
pub(super) static GPU_RINGS: Rings<GpuEntry> = Rings::new();

/// Records of threads whose ring is gone: their calls end in destructors of thread-locals.
pub(super) static LATE: Lock<Vec<LogRecord>> = Lock::new(Vec::new());
pub(super) const MAX_LATE: usize = 1024;

/// Moves the records and the entries that are in the rings now to `records` and `entries`, and removes the rings of threads
/// that have ended.
pub(super) fn drain(records: &mut Vec<LogRecord>, entries: &mut Vec<GpuEntry>) {
    RINGS.drain(records, ledger::add_pending);
    let mut late = LATE.lock();
    ledger::add_pending(late.len());
    records.append(&mut late);
    drop(late);
    GPU_RINGS.drain(entries, ledger::add_pending);
}

/// Returns how many entries loggers took, how many of these they could not save when they were last flushed, and how many have
/// not reached their loggers, at one moment.
pub(crate) fn outcomes() -> [u64; 3] {
    waiting(ledger::outcomes)
}

/// Calls `f` with the number of records and entries in the rings, while no thread drains them.
pub(super) fn waiting<R>(f: impl FnOnce(usize) -> R) -> R {
    RINGS.with_waiting(|records| {
        GPU_RINGS.with_waiting(|entries| {
            let late = LATE.lock();
            f(records + entries + late.len())
        })
    })
}
