//! The queue of jobs for the dispatcher, which calls loggers.

use std::collections::VecDeque;
use std::sync::Condvar;
use std::time::Instant;

use profiler_host::sync::{Lock, Requests, wait_while};

use super::entry::{LogEntry, Recipient};

/// A task of the dispatcher.
pub(super) enum Job {
    /// Calls one logger with one entry.
    Deliver(LogEntry, Recipient),
    /// Flushes all loggers, and answers the request of [`FLUSHES`] with this number.
    Flush(u64),
}

/// How many jobs the queue holds at most. Further ones wait in backlogs, and records then wait in the rings.
const CAPACITY: usize = 8192;

pub(super) static QUEUE: JobQueue = JobQueue::new();
/// Requests for a flush of all loggers.
pub(super) static FLUSHES: Requests = Requests::new();

/// A bounded queue between the threads that make jobs and the dispatcher.
pub(super) struct JobQueue {
    jobs: Lock<VecDeque<Job>>,
    ready: Condvar,
}

impl JobQueue {
    const fn new() -> Self {
        Self {
            jobs: Lock::new(VecDeque::new()),
            ready: Condvar::new(),
        }
    }

    /// Moves the first jobs of `backlog` to the queue, as many as it has space for.
    pub(super) fn push_some(&self, backlog: &mut VecDeque<Job>) {
        let mut jobs = self.jobs.lock();
        let space = CAPACITY.saturating_sub(jobs.len()).min(backlog.len());
        jobs.extend(backlog.drain(..space));
        drop(jobs);
        self.ready.notify_one();
    }

    /// Puts a job before all others, even where there is no space.
    pub(super) fn push_first(&self, job: Job) {
        self.jobs.lock().push_front(job);
        self.ready.notify_one();
    }

    /// Waits for a job; returns `None` at the time `until`.
    pub(super) fn pop(&self, until: Instant) -> Option<Job> {
        let timeout = until.checked_duration_since(Instant::now())?;
        let (mut jobs, _) = wait_while(&self.ready, self.jobs.lock(), timeout, |jobs| {
            jobs.is_empty()
        });
        jobs.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn flushes(ids: std::ops::Range<u64>) -> VecDeque<Job> {
        ids.map(Job::Flush).collect()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn the_queue_takes_no_more_than_its_capacity() {
        let queue = JobQueue::new();
        let mut backlog = flushes(0..CAPACITY as u64 + 3);
        queue.push_some(&mut backlog);
        assert_eq!(backlog.len(), 3);
        queue.push_some(&mut backlog);
        assert_eq!(backlog.len(), 3);
        assert!(matches!(queue.pop(soon()), Some(Job::Flush(0))));
        queue.push_some(&mut backlog);
        assert_eq!(backlog.len(), 2);
        assert!(matches!(backlog[0], Job::Flush(id) if id == CAPACITY as u64 + 1));
    }

    #[test]
    fn an_unfinished_flush_comes_first_even_in_a_full_queue() {
        let queue = JobQueue::new();
        queue.push_some(&mut flushes(0..CAPACITY as u64));
        queue.push_first(Job::Flush(77));
        let first = [queue.pop(soon()), queue.pop(soon())];
        assert!(matches!(first, [Some(Job::Flush(77)), Some(Job::Flush(0))]));
    }

    #[test]
    fn nothing_is_waited_for_after_the_time() {
        let queue = JobQueue::new();
        queue.push_some(&mut flushes(0..1));
        let past = Instant::now();
        std::thread::sleep(Duration::from_millis(1));
        assert!(queue.pop(past).is_none());
        assert!(queue.pop(soon()).is_some());
        assert!(
            queue
                .pop(Instant::now() + Duration::from_millis(1))
                .is_none()
        );
    }

    #[test]
    fn a_waiting_worker_gets_the_job() {
        let queue = JobQueue::new();
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| queue.pop(soon()));
            queue.push_some(&mut flushes(5..6));
            assert!(matches!(
                worker.join().expect("no panic"),
                Some(Job::Flush(5))
            ));
        });
    }
}
