//! What became of log entries: each is in one place at any time.

use super::watchdog;
use crate::diagnostics::{self, DropReason, count_dropped};
use crate::sync::Lock;

static LEDGER: Lock<Ledger> = Lock::new(Ledger::NEW);

/// Entries that have left the rings, one for each logger that is to take them. Changed under a lock, so that an entry
/// that goes from one place to another is never seen in both, or in none.
#[derive(Clone, Copy, Debug)]
struct Ledger {
    /// Those that have no outcome yet.
    pending: u64,
    /// Those that their loggers took.
    taken: u64,
    /// Of the taken ones, those that their loggers are bringing to safety right now.
    saving: u64,
    /// Of the taken ones, those that their loggers could not bring to safety when they were last flushed.
    unsaved: u64,
}

impl Ledger {
    const NEW: Self = Self {
        pending: 0,
        taken: 0,
        saving: 0,
        unsaved: 0,
    };
}

/// That of a process that was forked while a thread of its parent changed it.
impl Default for Ledger {
    fn default() -> Self {
        Self::NEW
    }
}

/// Where the entries are at one moment: each in one place.
pub(crate) struct EntryCounts {
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) left: u64,
}

/// Notes entries that left the rings.
pub(super) fn expect(entries: usize) {
    LEDGER.lock().pending += entries as u64;
}

/// Notes that records are entries of their own now, one for each logger, or none.
pub(super) fn forget(records: usize) {
    let mut ledger = LEDGER.lock();
    ledger.pending = ledger.pending.saturating_sub(records as u64);
}

/// Notes the outcome of an entry.
pub(super) fn end(outcome: Result<(), DropReason>) {
    let mut ledger = LEDGER.lock();
    ledger.pending = ledger.pending.saturating_sub(1);
    match outcome {
        Ok(()) => ledger.taken += 1,
        Err(reason) => count_dropped(reason, 1),
    }
}

/// Notes that a logger is flushed, which has taken so many entries since it last was; so many of these were unsaved.
pub(super) fn begin_saving(taken: u64, unsaved: u64) {
    let mut ledger = LEDGER.lock();
    ledger.saving += taken;
    ledger.unsaved = ledger.unsaved.saturating_sub(unsaved);
}

/// Notes that it is not any more, and how many of them are unsaved now.
pub(super) fn end_saving(taken: u64, unsaved: u64) {
    let mut ledger = LEDGER.lock();
    ledger.saving = ledger.saving.saturating_sub(taken);
    ledger.unsaved += unsaved;
}

/// Notes that taken entries are lost after all: nobody will flush their logger again.
pub(super) fn lose_taken(entries: u64) {
    let mut ledger = LEDGER.lock();
    ledger.taken = ledger.taken.saturating_sub(entries);
    count_dropped(DropReason::LoggerFailed, entries);
}

/// Entries that loggers took, those included that are not saved.
pub(crate) fn taken() -> u64 {
    LEDGER.lock().taken
}

/// Of these, those that loggers could not save when they were last flushed.
pub(crate) fn unsaved() -> u64 {
    LEDGER.lock().unsaved
}

/// Returns where the entries are, but for those that the cells of threads count; `waiting` of them are in the rings. Of
/// what has no outcome yet, `is_done` counts only what a blocked logger holds: the rest came later than what was asked
/// for.
pub(super) fn account(waiting: usize, is_done: bool) -> EntryCounts {
    let ledger = LEDGER.lock();
    // Where all that was asked for is done, a logger that is flushed right now saves what came later, unless it is one
    // that does not return.
    let saving = if is_done && watchdog::blocked() == 0 {
        0
    } else {
        ledger.saving
    };
    let not_safe = saving + ledger.unsaved;
    let on_the_way = if is_done {
        watchdog::held().min(ledger.pending)
    } else {
        waiting as u64 + ledger.pending
    };
    EntryCounts {
        delivered: ledger.taken.saturating_sub(not_safe),
        dropped: DropReason::ALL.into_iter().map(diagnostics::dropped).sum(),
        left: on_the_way + not_safe,
    }
}
