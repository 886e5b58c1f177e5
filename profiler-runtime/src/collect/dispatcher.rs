//! The queue of jobs for the worker that calls loggers, and the worker's replacement when a logger does not return.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar};
use std::time::Instant;

use super::entry::{LogEntry, Recipient};
use super::watchdog::Watchdog;
use super::worker;
use crate::diagnostics;
use crate::sync::{Lock, wait_while};

/// A task of the worker.
pub(super) enum Job {
    /// Calls one logger with one entry.
    Deliver(LogEntry, Recipient),
    /// Flushes all loggers, and answers the request with this number.
    Flush(u64),
}

/// How many jobs the queue holds at most. Further ones wait in backlogs, and records then wait in the rings.
const CAPACITY: usize = 8192;

static QUEUE: JobQueue = JobQueue::new();
/// The worker that owns the queue.
static WORKER: Lock<Option<Arc<Watchdog>>> = Lock::new(None);

/// A bounded queue between the threads that make jobs and the worker.
struct JobQueue {
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
    fn push_some(&self, backlog: &mut VecDeque<Job>) {
        let mut jobs = self.jobs.lock();
        let space = CAPACITY.saturating_sub(jobs.len()).min(backlog.len());
        jobs.extend(backlog.drain(..space));
        drop(jobs);
        self.ready.notify_one();
    }

    /// Puts a job before all others, even where there is no space.
    fn push_first(&self, job: Job) {
        self.jobs.lock().push_front(job);
        self.ready.notify_one();
    }

    /// Waits for a job; returns `None` at the time `until`.
    fn pop(&self, until: Instant) -> Option<Job> {
        let timeout = until.checked_duration_since(Instant::now())?;
        let (mut jobs, _) = wait_while(&self.ready, self.jobs.lock(), timeout, |jobs| {
            jobs.is_empty()
        });
        jobs.pop_front()
    }
}

/// Moves the first jobs of `backlog` to the queue, as many as it has space for.
pub(super) fn send(backlog: &mut VecDeque<Job>) {
    ensure_worker();
    QUEUE.push_some(backlog);
}

/// Waits for a job; returns `None` at the time `until`.
pub(super) fn next_job(until: Instant) -> Option<Job> {
    QUEUE.pop(until)
}

/// Has the next job be the flush that a worker did not finish.
pub(super) fn retry_flush(flush_id: u64) {
    QUEUE.push_first(Job::Flush(flush_id));
}

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
    let started = worker::start(&watchdog);
    *worker = started.is_ok().then_some(watchdog);
    started
}

/// Forgets a worker that has ended after too many panics. The next job starts another one.
pub(super) fn forget_worker(watchdog: &Arc<Watchdog>) {
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
        retry_flush(timed_out.flush_id);
    }
    let started = start_worker(&mut worker);
    drop(worker);
    timed_out.warn();
    warn_if_refused(started);
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
