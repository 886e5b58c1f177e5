//! Decides which worker owns the job queue when a logger does not return.
//!
//! A worker calls loggers, which are user code and may block forever. The collector's thread supervises the worker
//! and replaces it when a call takes too long. The two threads must agree on the outcome: with two owners a flush
//! would be answered while entries are still in user code, with none the queue would stand still.
//!
//! One atomic word, `since`, decides it:
//!
//! | value | the worker | owns the queue |
//! |---|---|---|
//! | `IDLE` | runs no user code | yes |
//! | a tick | is in user code since that tick | yes |
//! | `TAKEN_OVER` | is in user code and has been replaced | no |
//!
//! | transition | by | from | to | instruction |
//! |---|---|---|---|---|
//! | [`begin`](Takeover::begin) | worker | `IDLE` | tick | store |
//! | [`end`](Takeover::end) | worker | tick or `TAKEN_OVER` | `IDLE` | swap |
//! | [`take_over`](Takeover::take_over) | supervisor | the tick it has read | `TAKEN_OVER` | compare-exchange |
//!
//! *Agreement.* `end` and `take_over` both read and write the word in one step, so its modification order decides which
//! comes first. If `end` does, the compare-exchange fails: the word is `IDLE`, or the tick of a later call. (It cannot
//! be the same tick again, as only a call that began seconds ago is taken over.) If `take_over` does, `end` reads
//! `TAKEN_OVER` and the worker stops.
//!
//! *Orderings.* The accesses of the word are relaxed; the lock of `call` orders everything else. `begin` takes it before
//! its store, the supervisor holds it around its compare-exchange. If that succeeds, the lock was released by the
//! worker before: the supervisor sees what the worker wrote before the call, such as the flush that it executes.
//!
//! *Consequences.* The supervisor holds the lock until it has recorded the call as blocked, and `end` takes it after the
//! swap. A worker that has read `TAKEN_OVER` therefore undoes a record that is complete, never one that is still to be
//! made.

use profiler_host::sync::Lock;
use profiler_host::sync::primitive::atomic::{AtomicU64, Ordering::Relaxed};

const IDLE: u64 = 0;
const TAKEN_OVER: u64 = u64::MAX;

/// A worker's call of user code, which its supervisor may take the queue over from.
pub(super) struct Takeover<T> {
    since: AtomicU64,
    call: Lock<Option<T>>,
}

/// How a call ended.
pub(super) struct Ended<T> {
    /// `true` if the worker still owns the queue.
    pub(super) is_owner: bool,
    pub(super) call: Option<T>,
}

impl<T> Default for Takeover<T> {
    fn default() -> Self {
        Self {
            since: AtomicU64::new(IDLE),
            call: Lock::new(None),
        }
    }
}

impl<T> Takeover<T> {
    /// Notes on the worker that it enters user code at the tick `now`.
    pub(super) fn begin(&self, call: T, now: u64) {
        *self.call.lock() = Some(call);
        self.since.store(now.clamp(1, TAKEN_OVER - 1), Relaxed);
    }

    /// Notes on the worker that user code has returned. If the worker was in no user code, changes nothing and returns no call.
    pub(super) fn end(&self) -> Ended<T> {
        let is_owner = self.since.swap(IDLE, Relaxed) != TAKEN_OVER;
        // Waits until a supervisor that took over has recorded it.
        let call = self.call.lock().take();
        Ended { is_owner, call }
    }

    /// Returns the tick since which the worker is in user code, if it is and has not been replaced.
    pub(super) fn since(&self) -> Option<u64> {
        let since = self.since.load(Relaxed);
        (since != IDLE && since != TAKEN_OVER).then_some(since)
    }

    /// Takes the queue from a worker that is still in the call that began at `since`, and calls `record` before that
    /// worker can return. Returns `None` if it has returned already.
    pub(super) fn take_over<R>(
        &self,
        since: u64,
        record: impl FnOnce(Option<&T>) -> R,
    ) -> Option<R> {
        let call = self.call.lock();
        self.since
            .compare_exchange(since, TAKEN_OVER, Relaxed, Relaxed)
            .ok()?;
        Some(record(call.as_ref()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_returns_in_time_keeps_the_queue() {
        let takeover = Takeover::default();
        assert_eq!(takeover.since(), None);
        takeover.begin("call", 5);
        assert_eq!(takeover.since(), Some(5));
        let ended = takeover.end();
        assert!(ended.is_owner);
        assert_eq!(ended.call, Some("call"));
        assert_eq!(takeover.since(), None);
        assert_eq!(takeover.take_over(5, |_| ()), None);
    }

    #[test]
    fn a_call_that_is_taken_over_loses_the_queue_once() {
        let takeover = Takeover::default();
        takeover.begin("call", 5);
        assert_eq!(
            takeover.take_over(5, |call| call == Some(&"call")),
            Some(true)
        );
        assert_eq!(takeover.since(), None);
        assert_eq!(takeover.take_over(5, |_| ()), None);
        let ended = takeover.end();
        assert!(!ended.is_owner);
        assert_eq!(ended.call, Some("call"));
    }

    #[test]
    fn a_later_call_is_not_taken_over_for_an_earlier_one() {
        let takeover = Takeover::default();
        takeover.begin("first", 5);
        takeover.end();
        takeover.begin("second", 6);
        assert_eq!(takeover.take_over(5, |_| ()), None);
        assert!(takeover.end().is_owner);
    }

    #[test]
    fn ticks_at_the_edges_are_calls_too() {
        for now in [0, u64::MAX] {
            let takeover = Takeover::default();
            takeover.begin((), now);
            let since = takeover.since().expect("the worker is in a call");
            assert_eq!(takeover.take_over(since, |_| ()), Some(()));
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use profiler_host::sync::primitive::{Arc, thread};

    /// State that the worker and the supervisor share.
    #[derive(Default)]
    struct Setup {
        takeover: Takeover<u32>,
        /// Written by the worker before a call.
        flush_id: AtomicU64,
        /// Calls recorded as blocked.
        blocked: AtomicU64,
    }

    impl Setup {
        /// Returns `true` if the worker was replaced. `flush_id` is what it wrote before the call that began then.
        fn supervise(&self) -> bool {
            let Some(since) = self.takeover.since() else {
                return false;
            };
            let record = |call: Option<&u32>| {
                assert_eq!(call.copied().map(u64::from), Some(since));
                assert_eq!(self.flush_id.load(Relaxed), since);
                self.blocked.store(self.blocked.load(Relaxed) + 1, Relaxed);
            };
            self.takeover.take_over(since, record).is_some()
        }

        /// Makes one call, and returns `false` if the worker was replaced during it.
        fn call(&self, number: u32) -> bool {
            self.flush_id.store(number.into(), Relaxed);
            self.takeover.begin(number, number.into());
            let ended = self.takeover.end();
            assert_eq!(ended.call, Some(number));
            if !ended.is_owner {
                assert_eq!(self.blocked.load(Relaxed), 1);
                self.blocked.store(0, Relaxed);
            }
            ended.is_owner
        }
    }

    #[test]
    fn worker_and_supervisor_agree_on_the_owner() {
        loom::model(|| {
            let shared = Arc::new(Setup::default());
            let supervisor = thread::spawn({
                let shared = Arc::clone(&shared);
                move || shared.supervise()
            });
            let is_owner = shared.call(1) && shared.call(2);
            let was_replaced = supervisor.join().unwrap();
            assert_eq!(is_owner, !was_replaced);
            assert_eq!(shared.blocked.load(Relaxed), 0);
        });
    }

    #[test]
    fn two_supervisors_replace_a_worker_once() {
        loom::model(|| {
            let shared = Arc::new(Setup::default());
            let other = thread::spawn({
                let shared = Arc::clone(&shared);
                move || shared.supervise()
            });
            shared.flush_id.store(1, Relaxed);
            shared.takeover.begin(1, 1);
            let replaced = shared.supervise();
            let replaced = [replaced, other.join().unwrap()];
            assert_eq!(replaced.iter().filter(|replaced| **replaced).count(), 1);
        });
    }
}
