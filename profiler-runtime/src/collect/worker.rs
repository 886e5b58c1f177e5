//! The thread that calls loggers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::deliver::deliver;
use super::dispatcher::{self, Job, next_job, retry_flush};
use super::unflushed::flush_all;
use super::watchdog::Watchdog;
use super::{flush, ledger};
use crate::background::{self, Calls};
use crate::diagnostics::DropReason;
use crate::own_cost;

const THREAD: &str = "profiler-log";
/// How often loggers are flushed while entries arrive.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// Starts a worker, which executes jobs until another one takes over.
pub(super) fn start(watchdog: &Arc<Watchdog>) -> io::Result<()> {
    let (working, failed) = (Arc::clone(watchdog), Arc::clone(watchdog));
    let work = move || attend(&working, work);
    let on_failure = move || dispatcher::forget_worker(&failed);
    background::spawn(THREAD, Calls::Unmeasured, work, on_failure).map(drop)
}

/// Calls `work` unless another worker has taken over. Called again after a panic of the profiler itself: counts the
/// entry at hand as lost, and continues with the next job.
fn attend(watchdog: &Watchdog, work: impl FnOnce(&Watchdog)) {
    if recover(watchdog) {
        work(watchdog);
    }
}

/// Cleans up after a panic, if there was one. Returns `false` if another worker has taken over.
fn recover(watchdog: &Watchdog) -> bool {
    if watchdog.has_entry.swap(false, Relaxed) {
        ledger::resolve(Err(DropReason::ThreadPanicked));
    }
    let is_owner = watchdog.end_call();
    // After a takeover the supervisor has passed the flush on.
    let flush_id = watchdog.flush_id.swap(0, Relaxed);
    if is_owner && flush_id != 0 {
        retry_flush(flush_id);
    }
    is_owner
}

fn work(watchdog: &Watchdog) {
    let mut flush_at = Instant::now() + FLUSH_EVERY;
    loop {
        let is_owner = match next_job(flush_at) {
            Some(Job::Deliver(entry, recipient)) => {
                watchdog.has_entry.store(true, Relaxed);
                let is_owner = deliver(watchdog, &entry, recipient);
                watchdog.has_entry.store(false, Relaxed);
                is_owner
            }
            Some(Job::Flush(flush_id)) => {
                // Published by the lock in `Takeover::begin` before any logger is called.
                watchdog.flush_id.store(flush_id, Relaxed);
                let is_owner = flush_all(watchdog);
                watchdog.flush_id.store(0, Relaxed);
                own_cost::note_background();
                if is_owner {
                    flush::done(flush_id);
                }
                is_owner
            }
            None => {
                let is_owner = flush_all(watchdog);
                own_cost::note_background();
                flush_at = Instant::now() + FLUSH_EVERY;
                is_owner
            }
        };
        if !is_owner {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics;

    #[test]
    fn a_panic_loses_the_entry_at_hand_and_the_worker_continues() {
        let (watchdog, mut begun) = (Arc::new(Watchdog::default()), 0);
        let before = diagnostics::dropped(DropReason::ThreadPanicked);
        ledger::add_pending(1);
        let worker = std::thread::spawn(move || {
            background::run_persistently(THREAD, || {
                attend(&watchdog, |watchdog| {
                    begun += 1;
                    assert!(!watchdog.has_entry.swap(begun == 1, Relaxed));
                    if begun == 1 {
                        std::panic::panic_any("a test panics");
                    }
                });
            });
            begun
        });
        assert_eq!(worker.join().expect("the panic was caught"), 2);
        assert!(diagnostics::dropped(DropReason::ThreadPanicked) > before);
    }
}
