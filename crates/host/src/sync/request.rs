//! Numbered requests to a background thread, and waiting until they are answered.

use std::time::Duration;

use crate::sync::Lock;
use crate::sync::primitive::{Condvar, const_unless_loom};
use crate::sync::wait::wait_while;

/// Requests that one thread answers in the order in which they were issued.
///
/// Both counts change under one lock, and waiters check them under it before they sleep, so an answer between the check
/// and the sleep is not missed. The thread that issues a request wakes the answering thread afterwards; that thread reads
/// [`issued`](Self::issued) after it has cleared its wakeup, and so sees the request (see
/// [`Background::wake`](crate::background::Background::wake)).
pub struct Requests {
    counts: Lock<Counts>,
    changed: Condvar,
}

#[derive(Default)]
struct Counts {
    /// The number of requests so far, which is the id of the latest.
    issued: u64,
    /// The number of requests that were answered: all with an id up to this one.
    answered: u64,
}

impl Requests {
    const_unless_loom! {
        /// Creates a counter of requests, none of which is issued.
        pub fn new() -> Self {
            Self {
                counts: Lock::new(Counts { issued: 0, answered: 0 }),
                changed: Condvar::new(),
            }
        }
    }

    /// Issues a request and returns its id. Ids count up from 1.
    pub fn issue(&self) -> u64 {
        let mut counts = self.counts.lock();
        counts.issued += 1;
        counts.issued
    }

    /// Returns the id of the latest request, or 0 if there was none.
    pub fn issued(&self) -> u64 {
        self.counts.lock().issued
    }

    /// Returns the id of the latest request that was answered, or 0 if none was.
    pub fn answered(&self) -> u64 {
        self.counts.lock().answered
    }

    /// Returns how many requests have not been answered.
    pub fn unanswered(&self) -> u64 {
        let counts = self.counts.lock();
        counts.issued.saturating_sub(counts.answered)
    }

    /// Answers all requests up to the one with this id.
    pub fn answer_up_to(&self, id: u64) {
        let mut counts = self.counts.lock();
        counts.answered = counts.answered.max(id);
        drop(counts);
        self.changed.notify_all();
    }

    /// Answers the oldest `count` requests that are not answered.
    pub fn answer(&self, count: u64) {
        self.counts.lock().answered += count;
        self.changed.notify_all();
    }

    /// Waits until the request with this id is answered, until `timeout`, or until `is_served` returns `false`: the
    /// answering thread is gone. Returns `true` if the request was answered.
    pub fn wait(&self, id: u64, timeout: Duration, is_served: impl Fn() -> bool) -> bool {
        let unanswered = |counts: &mut Counts| counts.answered < id && is_served();
        let (counts, _) = wait_while(&self.changed, self.counts.lock(), timeout, unanswered);
        counts.answered >= id
    }

    /// Makes all waiters check again whether the requests are served.
    pub fn recheck_served(&self) {
        // Take the lock, so that no waiter is between its check and its sleep, where it would miss the notification.
        drop(self.counts.lock());
        self.changed.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;

    use super::*;

    #[test]
    fn requests_are_answered_in_order() {
        let requests = Requests::new();
        assert_eq!((requests.issue(), requests.issue()), (1, 2));
        requests.answer_up_to(1);
        assert!(requests.wait(1, Duration::ZERO, || true));
        assert!(!requests.wait(2, Duration::ZERO, || true));
        assert_eq!(
            (
                requests.issued(),
                requests.answered(),
                requests.unanswered()
            ),
            (2, 1, 1)
        );
        // An answer never takes an earlier one back.
        requests.answer_up_to(0);
        requests.answer(1);
        assert!(requests.wait(2, Duration::ZERO, || true));
        assert_eq!(requests.unanswered(), 0);
    }

    #[test]
    fn a_request_that_is_not_served_is_not_waited_for() {
        let (requests, is_served) = (Requests::new(), AtomicBool::new(true));
        let id = requests.issue();
        thread::scope(|scope| {
            let waiting =
                scope.spawn(|| requests.wait(id, Duration::MAX, || is_served.load(Relaxed)));
            is_served.store(false, Relaxed);
            requests.recheck_served();
            assert!(!waiting.join().expect("it does not panic"));
        });
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use loom::thread;

    use super::*;

    #[test]
    fn no_answer_is_missed() {
        loom::model(|| {
            let requests = Arc::new(Requests::new());
            let id = requests.issue();
            let answering = Arc::clone(&requests);
            let thread = thread::spawn(move || answering.answer_up_to(id));
            // Loom reports a deadlock if the wait does not end.
            assert!(requests.wait(id, Duration::MAX, || true));
            thread.join().unwrap();
        });
    }

    #[test]
    fn the_end_of_the_answering_thread_is_not_missed() {
        loom::model(|| {
            let requests = Arc::new(Requests::new());
            let is_served = Arc::new(AtomicBool::new(true));
            let id = requests.issue();
            let (ending, its_flag) = (Arc::clone(&requests), Arc::clone(&is_served));
            let thread = thread::spawn(move || {
                its_flag.store(false, Relaxed);
                ending.recheck_served();
            });
            assert!(!requests.wait(id, Duration::MAX, || is_served.load(Relaxed)));
            thread.join().unwrap();
        });
    }
}
