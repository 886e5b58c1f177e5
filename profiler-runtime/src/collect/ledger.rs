//! Counts log entries by what became of them: each is in one place at any time.

use profiler_host::sync::Lock;
use profiler_report::DropReason;

use crate::losses::{self, count_dropped};

static LEDGER: Lock<Ledger> = Lock::new(Ledger::NEW);

/// Entries that have left the rings, one for each logger that is to take them. The lock is held for each change, so
/// that an entry that moves from one count to another is never seen in both, or in none.
#[derive(Clone, Copy, Debug)]
struct Ledger {
    /// Entries without an outcome.
    pending: u64,
    /// Entries that their loggers took.
    taken: u64,
    /// Of the taken ones, those whose loggers are being flushed now.
    saving: u64,
    /// Of the taken ones, those that their loggers could not save when they were last flushed.
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

/// The counts of a process that was forked while a thread of its parent changed them.
impl Default for Ledger {
    fn default() -> Self {
        Self::NEW
    }
}

/// Where the entries of this process are at one moment, each in one place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EntryCounts {
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) left: u64,
}

impl Ledger {
    fn begin_saving(&mut self, taken: u64, unsaved: u64) {
        self.saving += taken;
        self.unsaved = self.unsaved.saturating_sub(unsaved);
    }

    fn end_saving(&mut self, taken: u64, unsaved: u64) {
        self.saving = self.saving.saturating_sub(taken);
        self.unsaved += unsaved;
    }

    fn counts(&self, waiting: u64, dropped: u64, is_done: bool) -> EntryCounts {
        // After a flush that is done, what is on its way, or being saved, came later.
        let later = waiting + self.pending;
        let (on_the_way, saving) = if is_done {
            (0, 0)
        } else {
            (later, self.saving)
        };
        let not_safe = saving + self.unsaved;
        EntryCounts {
            delivered: self.taken.saturating_sub(not_safe),
            dropped,
            left: on_the_way + not_safe,
        }
    }
}

/// Adds entries that have left the rings.
pub(super) fn add_pending(entries: usize) {
    LEDGER.lock().pending += entries as u64;
}

/// Removes a record that left the rings: it has become one entry for each of its loggers, which are added themselves.
pub(super) fn remove_pending(records: usize) {
    let mut ledger = LEDGER.lock();
    ledger.pending = ledger.pending.saturating_sub(records as u64);
}

/// Records the outcome of an entry.
pub(super) fn resolve(outcome: Result<(), DropReason>) {
    let mut ledger = LEDGER.lock();
    ledger.pending = ledger.pending.saturating_sub(1);
    match outcome {
        Ok(()) => ledger.taken += 1,
        // With the lock held, so that no reader sees the entry both as pending and as dropped.
        Err(reason) => count_dropped(reason, 1),
    }
}

/// Records that a logger is being flushed which took `taken` entries since its last flush that succeeded. `unsaved` of
/// them were counted as unsaved.
pub(super) fn begin_saving(taken: u64, unsaved: u64) {
    LEDGER.lock().begin_saving(taken, unsaved);
}

/// Records that the logger's flush has returned, and how many of the entries are unsaved now.
pub(super) fn end_saving(taken: u64, unsaved: u64) {
    LEDGER.lock().end_saving(taken, unsaved);
}

/// Turns taken entries into dropped ones: their logger will not be flushed again.
pub(super) fn lose_taken(entries: u64) {
    let mut ledger = LEDGER.lock();
    ledger.taken = ledger.taken.saturating_sub(entries);
    count_dropped(DropReason::LoggerFailed, entries);
}

/// Returns how many entries loggers took, including those that are not saved.
pub(crate) fn taken() -> u64 {
    LEDGER.lock().taken
}

/// Returns how many entries loggers took, how many of these they could not save when they were last flushed, and how many have
/// no outcome, of which `waiting` are in the rings.
pub(super) fn outcomes(waiting: usize) -> [u64; 3] {
    let ledger = LEDGER.lock();
    [
        ledger.taken,
        ledger.unsaved,
        ledger.pending + waiting as u64,
    ]
}

/// Returns where the entries are, except those that threads count in their own cells; `waiting` of them are in the
/// rings. After a flush that is done, none of them counts as left: they were added after the flush was requested.
pub(super) fn counts(waiting: usize, is_done: bool) -> EntryCounts {
    let ledger = LEDGER.lock();
    let dropped = DropReason::ALL.into_iter().map(losses::dropped).sum();
    ledger.counts(waiting as u64, dropped, is_done)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Ledger = Ledger {
        pending: 5,
        taken: 10,
        saving: 0,
        unsaved: 0,
    };

    fn counts(delivered: u64, dropped: u64, left: u64) -> EntryCounts {
        EntryCounts {
            delivered,
            dropped,
            left,
        }
    }

    #[test]
    fn what_waits_is_left_until_a_flush_is_done() {
        assert_eq!(SOME.counts(2, 1, false), counts(10, 1, 7));
        assert_eq!(SOME.counts(2, 1, true), counts(10, 1, 0));
    }

    #[test]
    fn what_a_logger_is_saving_is_not_delivered_yet() {
        let mut ledger = SOME;
        ledger.begin_saving(4, 0);
        assert_eq!(ledger.counts(0, 0, false), counts(6, 0, 9));
        // It was added after the flush that is done.
        assert_eq!(ledger.counts(0, 0, true), counts(10, 0, 0));
        ledger.end_saving(4, 0);
        assert_eq!(ledger.counts(0, 0, false), counts(10, 0, 5));
    }

    #[test]
    fn what_could_not_be_saved_is_left_until_it_is() {
        let mut ledger = SOME;
        ledger.begin_saving(4, 0);
        ledger.end_saving(4, 3);
        assert_eq!(ledger.counts(0, 0, true), counts(7, 0, 3));
        ledger.begin_saving(4, 3);
        ledger.end_saving(4, 0);
        assert_eq!(ledger.counts(0, 0, true), counts(10, 0, 0));
    }
}
