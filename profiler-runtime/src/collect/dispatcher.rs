//! The thread that calls loggers, and its replacement when a logger does not return: a worker owns the queue of jobs until
//! another one takes over.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use profiler_host::background::{self, Calls};
use profiler_host::diagnostics;
use profiler_host::sync::Lock;
use profiler_report::DropReason;

use super::deliver::deliver;
use super::jobs::{FLUSHES, Job, QUEUE};
use super::ledger;
use super::unflushed::flush_all;
use super::watchdog::Watchdog;
use crate::own_cost;

const THREAD: &str = "profiler-log";
/// How often loggers are flushed while entries arrive.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// The worker that owns the queue.
static WORKER: Lock<Option<Arc<Watchdog>>> = Lock::new(None);

/// Starts a worker if there is none.
pub(super) fn ensure_worker() {
    let mut worker = WORKER.lock();
    if worker.is_some() {
        return;
    }
    let started = start_worker(&mut worker);
    drop(worker);
    warn_if_refused(started);
}

/// Starts a worker that owns the queue from now on. There is none if the system starts no thread.
fn start_worker(worker: &mut Option<Arc<Watchdog>>) -> io::Result<()> {
    let watchdog = Arc::new(Watchdog::default());
    let (working, failed) = (Arc::clone(&watchdog), Arc::clone(&watchdog));
    // It executes jobs until another worker takes over.
    let work = move || attend(&working, work);
    let on_failure = move || forget_worker(&failed);
    let started = background::spawn(THREAD, Calls::Unmeasured, work, on_failure).map(drop);
    *worker = started.is_ok().then_some(watchdog);
    started
}

/// Forgets a worker that has ended after too many panics. The next job starts another one.
fn forget_worker(watchdog: &Arc<Watchdog>) {
    let mut worker = WORKER.lock();
    if worker
        .as_ref()
        .is_some_and(|own| Arc::ptr_eq(own, watchdog))
    {
        *worker = None;
    }
}

/// Warns that no worker could be started. Call it with no lock held: the warning may reach user code.
fn warn_if_refused(started: io::Result<()>) {
    if let Err(error) = started {
        diagnostics::warn_once(&format!(
            "the profiler's log thread cannot be started ({error}): single calls are not logged until it can, the \
             summary is still exact"
        ));
    }
}

/// Replaces the worker if a logger does not return. The collector's thread calls this in each round.
pub(super) fn supervise() {
    let mut worker = WORKER.lock();
    let Some(timed_out) = worker
        .as_ref()
        .and_then(|worker| worker.time_out_if_blocked())
    else {
        return;
    };
    // The next worker answers the flush.
    if timed_out.flush_id != 0 {
        QUEUE.push_first(Job::Flush(timed_out.flush_id));
    }
    let started = start_worker(&mut worker);
    drop(worker);
    timed_out.warn();
    warn_if_refused(started);
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
        QUEUE.push_first(Job::Flush(flush_id));
    }
    is_owner
}

fn work(watchdog: &Watchdog) {
    let mut flush_at = Instant::now() + FLUSH_EVERY;
    loop {
        let is_owner = match QUEUE.pop(flush_at) {
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
                    FLUSHES.answer_up_to(flush_id);
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
    use profiler_host::diagnostics::user_code;

    use super::*;
    use crate::losses;

    #[test]
    fn a_panic_loses_the_entry_at_hand_and_the_worker_continues() {
        let (watchdog, mut begun) = (Arc::new(Watchdog::default()), 0);
        let before = losses::dropped(DropReason::ThreadPanicked);
        ledger::add_pending(1);
        let worker = std::thread::spawn(move || {
            let mut work = || {
                attend(&watchdog, |watchdog| {
                    begun += 1;
                    assert!(!watchdog.has_entry.swap(begun == 1, Relaxed));
                    if begun == 1 {
                        std::panic::panic_any("a test panics");
                    }
                });
            };
            // As a thread of the profiler, but without the warning that this is a bug.
            for _ in 0..3 {
                if user_code::call(&mut work).is_some() {
                    break;
                }
            }
            begun
        });
        assert_eq!(worker.join().expect("the panic was caught"), 2);
        assert!(losses::dropped(DropReason::ThreadPanicked) > before);
    }
}
