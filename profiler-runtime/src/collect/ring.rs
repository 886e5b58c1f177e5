//! The threads' rings of log records: bounded, with one producer and one consumer each, and never waited for.

use profiler_host::sync::{Lock, Rings};

use super::ledger;
use crate::log_record::LogRecord;

pub(super) static RINGS: Rings<LogRecord> = Rings::new();

/// Records of threads whose ring is gone: their calls end in destructors of thread-locals.
pub(super) static LATE: Lock<Vec<LogRecord>> = Lock::new(Vec::new());
pub(super) const MAX_LATE: usize = 1024;

/// Moves the records that are in the rings now to `batch`, and removes the rings of threads that have ended.
pub(super) fn drain(batch: &mut Vec<LogRecord>) {
    RINGS.drain(batch, ledger::add_pending);
    let mut late = LATE.lock();
    ledger::add_pending(late.len());
    batch.append(&mut late);
}

/// Calls `f` with the number of records in the rings, while no thread drains them.
pub(super) fn waiting<R>(f: impl FnOnce(usize) -> R) -> R {
    RINGS.with_waiting(|waiting| {
        let late = LATE.lock();
        f(waiting + late.len())
    })
}
