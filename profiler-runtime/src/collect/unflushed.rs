//! Loggers that took entries since they were last flushed.

use profiler_host::diagnostics::user_code;
use profiler_host::sync::Lock;

use super::contain::{contain, to_text, warn_of_failure};
use super::entry::Recipient;
use super::{held_up, ledger};

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

/// Returns `true` if a logger has to be flushed.
pub(super) fn are_any() -> bool {
    !UNFLUSHED.lock().is_empty()
}

/// Flushes the loggers that took entries since they were last flushed, on the collector's thread.
pub(super) fn flush_all() {
    let mut failed = Vec::new();
    // Measured threads that call loggers add to the list meanwhile: what they add is flushed the next time.
    let loggers = UNFLUSHED.lock().len();
    for _ in 0..loggers {
        // Taken from the list one at a time, without its lock: a flush is user code.
        let Some(unflushed) = take_oldest() else {
            break;
        };
        let taken = unflushed.taken;
        let flushed = held_up::call(unflushed.id(), || unflushed.flush(true));
        ledger::end_saving(taken, flushed.unsaved);
        failed.extend(flushed.again);
    }
    UNFLUSHED.lock().append(&mut failed);
}

/// Takes the logger that has waited for the longest time.
fn take_oldest() -> Option<Unflushed> {
    let mut unflushed = UNFLUSHED.lock();
    (!unflushed.is_empty()).then(|| unflushed.remove(0))
}

/// Flushes a logger that [`remember`] had no space for, and counts the entries that it cannot save as dropped.
pub(super) fn flush_for_the_last_time(unflushed: Unflushed) {
    let taken = unflushed.taken;
    let flushed = unflushed.flush(false);
    ledger::end_saving(taken, 0);
    ledger::lose_taken(flushed.unsaved);
}

/// The result of flushing a logger.
struct Flushed {
    /// How many entries the logger could not save.
    unsaved: u64,
    /// The logger, if it failed and is kept for the next flush: a full disk may have space then.
    again: Option<Unflushed>,
}

impl Unflushed {
    /// Returns the number of a name that the logger took an entry for.
    pub(super) const fn id(&self) -> u32 {
        self.id
    }

    /// Flushes the logger. The caller ends what this begins in the ledger.
    fn flush(self, keep: bool) -> Flushed {
        let Self {
            id,
            recipient,
            taken,
            unsaved: before,
        } = self;
        ledger::begin_saving(taken, before);
        let breaker = recipient.breaker;
        let (mut error, mut unsaved, mut again) = (None, 0, None);
        let result = contain(id, breaker, || {
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
                // This may be the last handle, and its destructor is user code.
                user_code::drop_value(recipient);
            }
            returned
        });
        // `contain` has warned of a panic.
        if let Some(error) = error.filter(|_| result.is_some()) {
            warn_of_failure(id, &error);
        }
        Flushed { unsaved, again }
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
        let flushed = unflushed.flush(keep);
        ledger::end_saving(taken, 0);
        flushed
    }

    #[test]
    fn a_flush_that_succeeds_lets_go_of_the_logger() {
        let disk = Arc::new(Disk::default());
        let flushed = flush(unflushed(&disk, 3), true);
        assert!(flushed.again.is_none());
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
