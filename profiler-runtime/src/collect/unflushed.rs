//! Loggers that took entries since they were last flushed.

use profiler_host::diagnostics::user_code;
use profiler_host::sync::Lock;

use super::entry::Recipient;
use super::ledger;
use super::watchdog::{CallInfo, Watchdog, is_stuck, to_text, warn_of_failure};

static UNFLUSHED: Lock<Vec<Unflushed>> = Lock::new(Vec::new());
/// How many loggers wait for a flush at most: a program may make a new one for each call.
const MAX_UNFLUSHED: usize = 64;

/// A logger that has to be flushed.
pub(super) struct Unflushed {
    /// A name that the logger took an entry for; warnings mention it.
    id: u32,
    recipient: Recipient,
    /// How many entries the logger took since its last flush that succeeded.
    taken: u64,
    /// Of these, those that it could not save.
    unsaved: u64,
}

/// Keeps a logger that has taken an entry until it is flushed. Returns one to be flushed now if there are too many.
pub(super) fn remember(id: u32, recipient: Recipient) -> Option<Unflushed> {
    let mut unflushed = UNFLUSHED.lock();
    let mut loggers = unflushed.iter_mut();
    match loggers.find(|other| other.recipient.logger.is_same(&recipient.logger)) {
        Some(known) => known.taken += 1,
        None => unflushed.push(Unflushed {
            id,
            recipient,
            taken: 1,
            unsaved: 0,
        }),
    }
    (unflushed.len() > MAX_UNFLUSHED).then(|| unflushed.swap_remove(0))
}

/// Flushes the loggers that took entries since they were last flushed. Returns `false` if another worker has taken over.
pub(super) fn flush_all(watchdog: &Watchdog) -> bool {
    let mut failed = Vec::new();
    let mut is_owner = true;
    // Taken from the list one at a time: if one blocks, the next worker finds the others.
    while is_owner && let Some(mut unflushed) = { UNFLUSHED.lock().pop() } {
        if is_stuck(&unflushed.recipient.logger) {
            unflushed.count_as_unsaved();
            failed.push(unflushed);
            continue;
        }
        let taken = unflushed.taken;
        let flushed = unflushed.flush(watchdog, true);
        ledger::end_saving(taken, flushed.unsaved);
        failed.extend(flushed.again);
        is_owner = flushed.is_owner;
    }
    UNFLUSHED.lock().append(&mut failed);
    is_owner
}

/// Flushes a logger that [`remember`] had no space for, and counts the entries that it cannot save as dropped.
/// `is_owner` tells whether this worker still owns the queue: if not, the next one flushes the logger.
pub(super) fn flush_for_the_last_time(
    watchdog: &Watchdog,
    is_owner: bool,
    unflushed: Unflushed,
) -> bool {
    if !is_owner {
        UNFLUSHED.lock().push(unflushed);
        return false;
    }
    let taken = unflushed.taken;
    let flushed = unflushed.flush(watchdog, false);
    ledger::end_saving(taken, 0);
    ledger::lose_taken(flushed.unsaved);
    flushed.is_owner
}

/// The result of flushing a logger.
struct Flushed {
    /// `false` if another worker has taken over during the call.
    is_owner: bool,
    /// How many entries the logger could not save.
    unsaved: u64,
    /// The logger, if it failed and is kept for the next flush: a full disk may have space then.
    again: Option<Unflushed>,
}

impl Unflushed {
    /// Counts all its entries as unsaved: a call of the logger has not returned.
    fn count_as_unsaved(&mut self) {
        ledger::begin_saving(self.taken, self.unsaved);
        self.unsaved = self.taken;
        ledger::end_saving(self.taken, self.unsaved);
    }

    /// Flushes the logger under watch. The caller ends what this begins in the ledger.
    fn flush(self, watchdog: &Watchdog, keep: bool) -> Flushed {
        let Self {
            id,
            recipient,
            taken,
            unsaved: before,
        } = self;
        ledger::begin_saving(taken, before);
        let call = CallInfo {
            id,
            breaker: recipient.breaker,
            logger: recipient.logger.share(),
            entries: 0,
        };
        let (mut error, mut unsaved, mut again) = (None, 0, None);
        let outcome = watchdog.run(call, || {
            let logger = recipient.logger.as_dyn();
            let returned = user_code::call(|| {
                error = to_text(logger.flush()).err();
                if error.is_some() {
                    // The program may call the logger too: count no more entries than the profiler passed to it.
                    unsaved = logger.unsaved().min(taken);
                }
            });
            if keep && error.is_some() && returned.is_some() {
                again = Some(Self {
                    id,
                    recipient,
                    taken,
                    unsaved,
                });
            } else {
                // Under watch as well: this may be the last handle, and its destructor is user code.
                user_code::drop_value(recipient);
            }
            returned
        });
        // The watchdog has warned of a panic.
        if let Some(error) = error.filter(|_| outcome.result.is_some()) {
            warn_of_failure(id, &error);
        }
        Flushed {
            is_owner: outcome.is_owner,
            unsaved,
            again,
        }
    }
}

#[cfg(test)]
pub(super) fn holds(logger: &profiler_log::Logger) -> bool {
    let unflushed = UNFLUSHED.lock();
    unflushed
        .iter()
        .any(|unflushed| unflushed.recipient.logger.is_same(logger))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use super::*;
    use profiler_log::{IntoLogger, LogError, ScalarLogger};

    /// Fails to save while its disk is full.
    #[derive(Default)]
    struct Disk {
        is_full: AtomicBool,
        unsaved: AtomicU64,
    }

    impl ScalarLogger for Disk {
        fn add_scalar(&self, _: &str, _: f64, _: u64) -> Result<(), LogError> {
            Ok(())
        }

        fn unsaved(&self) -> u64 {
            self.unsaved.load(Relaxed)
        }

        fn flush(&self) -> Result<(), LogError> {
            if self.is_full.load(Relaxed) {
                return Err(LogError::other("the disk of a test is full"));
            }
            Ok(())
        }
    }

    fn unflushed(disk: &Arc<Disk>, taken: u64) -> Unflushed {
        Unflushed {
            id: u32::MAX,
            recipient: Recipient {
                logger: Arc::clone(disk).into_logger(),
                breaker: Box::leak(Box::default()),
            },
            taken,
            unsaved: 0,
        }
    }

    fn flush(unflushed: Unflushed, keep: bool) -> Flushed {
        let taken = unflushed.taken;
        let flushed = unflushed.flush(&Watchdog::default(), keep);
        ledger::end_saving(taken, 0);
        flushed
    }

    #[test]
    fn a_flush_that_succeeds_lets_go_of_the_logger() {
        let disk = Arc::new(Disk::default());
        let flushed = flush(unflushed(&disk, 3), true);
        assert!(flushed.is_owner && flushed.again.is_none());
        assert_eq!((flushed.unsaved, Arc::strong_count(&disk)), (0, 1));
    }

    #[test]
    fn a_flush_that_fails_is_tried_again() {
        let disk = Arc::new(Disk::default());
        disk.is_full.store(true, Relaxed);
        disk.unsaved.store(2, Relaxed);
        let flushed = flush(unflushed(&disk, 3), true);
        let again = flushed.again.expect("the logger is kept");
        assert_eq!((again.taken, again.unsaved, flushed.unsaved), (3, 2, 2));
        disk.is_full.store(false, Relaxed);
        assert!(flush(again, true).again.is_none());
    }

    #[test]
    fn a_logger_has_lost_no_more_than_it_took() {
        let disk = Arc::new(Disk::default());
        disk.is_full.store(true, Relaxed);
        disk.unsaved.store(100, Relaxed);
        assert_eq!(flush(unflushed(&disk, 3), true).unsaved, 3);
    }

    #[test]
    fn the_last_flush_keeps_nothing() {
        let disk = Arc::new(Disk::default());
        disk.is_full.store(true, Relaxed);
        let flushed = flush(unflushed(&disk, 3), false);
        assert!(flushed.again.is_none());
        assert_eq!(Arc::strong_count(&disk), 1);
    }
}
