//! The thread that empties the rings of all threads.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use profiler_host::background::Background;
use profiler_host::diagnostics::user_code;
use profiler_report::{DropReason, TimeSource};

use super::backlog::Backlog;
use super::entry::LogEntry;
use super::jobs::FLUSHES;
use super::{dispatcher, ledger, ring};
use crate::clock::{WallAnchor, clock};
use crate::log_record::LogRecord;
use crate::losses;
use crate::name::{self, Name};
use crate::own_cost;

static THREAD: Background = Background::new("profiler-collector", run, ended);

/// How long the collector sleeps while the dispatcher's queue is full.
const RETRY: Duration = Duration::from_millis(1);
/// How long it sleeps while records arrive. At 100,000 calls a second a thread fills half of its ring in this time; a
/// faster one wakes the collector.
const BUSY: Duration = Duration::from_millis(10);
/// How long it sleeps after [`QUIET_ROUNDS`] rounds without a record. With the half second between two flushes of the
/// loggers, an entry is saved within a second.
const IDLE: Duration = Duration::from_millis(200);
const QUIET_ROUNDS: u32 = 50;

/// Starts the collector if it is not running. Returns `false` if it cannot be started.
pub(super) fn ensure_started() -> bool {
    THREAD.ensure_started("single calls are not logged, the summary is still exact")
}

/// Sends the backlog of another thread. The collector supervises the dispatcher and answers flushes, also when only the GPU's
/// resolver logs.
pub(crate) fn send(backlog: &mut Backlog) {
    if !backlog.is_empty() {
        ensure_started();
        backlog.send();
    }
}

pub(super) fn is_running() -> bool {
    THREAD.is_running()
}

/// Has the collector empty the rings soon. Cheap if it was woken already.
pub(super) fn wake() {
    THREAD.wake();
}

/// Returns `true` if the collector has ended after too many panics.
pub(super) fn has_ended() -> bool {
    THREAD.has_ended()
}

/// Counts the waiting records as dropped and releases threads that wait for a flush. Called when the collector ends.
fn ended() {
    let mut batch = Vec::new();
    ring::drain(&mut batch);
    drop_records(batch, DropReason::NoCollector);
    FLUSHES.recheck_served();
}

/// Counts records as dropped: no logger gets them.
fn drop_records(records: impl IntoIterator<Item = LogRecord>, reason: DropReason) {
    for record in records {
        ledger::resolve(Err(reason));
        // A logger's destructor is user code, and this may run during a panic.
        user_code::drop_value(record);
    }
}

fn run() {
    let mut collector = Collector::default();
    loop {
        THREAD.clear_wakeup();
        let sleep = collector.round();
        dispatcher::supervise();
        losses::warn_of_drops();
        own_cost::note_background();
        thread::park_timeout(sleep);
    }
}

/// State of the collector's thread. Its destructor counts what a panic has left in it.
#[derive(Default)]
struct Collector {
    batch: Vec<LogRecord>,
    /// The records of the batch that are no jobs yet.
    rest: VecDeque<LogRecord>,
    /// `true` while one record is neither in `rest` nor in the backlog.
    has_record: bool,
    /// Jobs that the dispatcher has not taken yet. The rings are not emptied while there are any.
    backlog: Backlog,
    names: Vec<&'static Name>,
    /// The last flush request that was passed on.
    flushed: u64,
    /// How many rounds in succession found no record.
    quiet: u32,
}

impl Collector {
    /// Empties the rings once. Returns how long to sleep until the next round.
    fn round(&mut self) -> Duration {
        if self.backlog.is_empty() {
            // Read before the rings are: records that were pushed before the request are then in this batch.
            let requested = FLUSHES.issued();
            ring::drain(&mut self.batch);
            self.take_batch();
            if requested > self.flushed {
                self.flushed = requested;
                self.backlog.add_flush(requested);
                self.quiet = 0;
            }
        }
        self.backlog.send();
        self.sleep()
    }

    fn sleep(&self) -> Duration {
        if !self.backlog.is_empty() {
            RETRY
        } else if self.quiet < QUIET_ROUNDS {
            BUSY
        } else {
            IDLE
        }
    }

    fn take_batch(&mut self) {
        if self.batch.is_empty() {
            self.quiet = self.quiet.saturating_add(1);
            return;
        }
        self.quiet = 0;
        // Each ring is in order. Across threads, steps follow the ends of the calls. Sorting allocates, and one thread needs none.
        if !self.batch.is_sorted_by_key(|record| record.end) {
            self.batch.sort_by_key(|record| record.end);
        }
        let anchor = WallAnchor::now();
        self.rest.extend(self.batch.drain(..));
        while let Some(record) = self.rest.pop_front() {
            self.has_record = true;
            self.add_jobs(record, anchor);
            self.has_record = false;
        }
    }

    /// Turns a record into one job for each logger that takes it.
    fn add_jobs(&mut self, record: LogRecord, anchor: WallAnchor) {
        let LogRecord { request, .. } = record;
        let Some(name) = self.name(record.id) else {
            user_code::drop_value(request);
            return ledger::remove_pending(1);
        };
        let own_step = || next_step(name, request.skipped, request.every);
        let step = request.step.unwrap_or_else(own_step);
        if name.decide_time_source(TimeSource::Cpu) == TimeSource::Cuda {
            ledger::resolve(Err(DropReason::NoCudaTime));
            // A logger's destructor is user code.
            user_code::drop_value(request);
            return;
        }
        let milliseconds = clock().nanoseconds(record.elapsed.max(0) as f64) / 1e6;
        let entry = LogEntry {
            name,
            milliseconds,
            cpu_ms: milliseconds,
            cuda: None,
            step,
            wall_time: anchor.wall_time(record.end),
        };
        // Adds one pending entry for each logger, in place of the record.
        self.backlog.add(entry, request.logger);
        ledger::remove_pending(1);
    }

    fn name(&mut self, id: u32) -> Option<&'static Name> {
        if id as usize >= self.names.len() {
            self.names = name::all();
        }
        self.names.get(id as usize).copied()
    }
}

impl Drop for Collector {
    /// Counts the records that a panic of the thread has left behind.
    fn drop(&mut self) {
        if self.has_record {
            ledger::resolve(Err(DropReason::ThreadPanicked));
        }
        let records = self.batch.drain(..).chain(self.rest.drain(..));
        drop_records(records, DropReason::ThreadPanicked);
    }
}

/// Returns the step of a call that gave none: how many calls of its name came before it. A dropped entry leaves a gap,
/// since `skipped` counts its calls too.
pub(crate) fn next_step(name: &Name, skipped: u64, every: u32) -> u64 {
    let calls = skipped + u64::from(every);
    name.next_step.fetch_add(calls, Relaxed) + skipped
}

#[cfg(test)]
mod tests {
    use std::panic::Location;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::log_record::LogRequest;
    use profiler_host::diagnostics::user_code;
    use profiler_log::{IntoLogger, Logger};

    fn record(name: &Name, end: u64, request: LogRequest) -> LogRecord {
        LogRecord {
            id: name.id,
            end,
            elapsed: 0,
            request,
        }
    }

    fn to(logger: Logger) -> LogRequest {
        LogRequest {
            logger: Some(logger),
            ..LogRequest::new(1)
        }
    }

    /// Turns a batch into jobs, and returns the steps that the jobs were given.
    fn steps(batch: Vec<LogRecord>) -> Vec<u64> {
        let mut collector = Collector::default();
        collector.batch = batch;
        collector.take_batch();
        let mut steps = Vec::new();
        collector
            .backlog
            .for_each_job(|entry, _| steps.push(entry.step));
        steps
    }

    fn logger() -> Logger {
        (|_: &str, _: f64, _: u64| ()).into_logger()
    }

    #[test]
    fn records_that_are_lost_in_a_panic_are_counted() {
        let name = name::declared("collector: panics", Location::caller());
        let before = losses::dropped(DropReason::ThreadPanicked);
        let panicked = user_code::call(|| {
            let mut collector = Collector::default();
            let record = || record(name, 0, LogRequest::new(1));
            collector.batch.push(record());
            collector.rest.extend([record(), record()]);
            collector.has_record = true;
            std::panic::panic_any("a test panics");
        });
        assert!(panicked.is_none());
        let lost = losses::dropped(DropReason::ThreadPanicked) - before;
        // Other tests lose some too.
        assert!(lost >= 4, "{lost}");
    }

    #[test]
    fn a_dropped_entry_leaves_a_gap_in_the_steps() {
        let name = name::declared("collector: gaps", Location::caller());
        let steps = [0, 0, 30, 0].map(|skipped| next_step(name, skipped, 10));
        assert_eq!(steps, [0, 10, 50, 60]);
    }

    #[test]
    fn steps_follow_the_ends_of_the_calls() {
        let name = name::declared("collector: order", Location::caller());
        let (sender, receiver) = channel();
        let logs_end = |end: u64| {
            let sender = sender.clone();
            to((move |_: &str, _: f64, _: u64| sender.send(end)).into_logger())
        };
        let batch = [30, 10, 20].map(|end| record(name, end, logs_end(end)));
        let mut collector = Collector::default();
        collector.batch.extend(batch);
        collector.take_batch();
        let mut step = 0;
        collector.backlog.for_each_job(|entry, recipient| {
            assert_eq!(entry.step, step);
            step += 1;
            let logged = recipient.logger.as_dyn().add(&entry.scalar());
            assert!(logged.is_ok());
        });
        drop(sender);
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [10, 20, 30]);
    }

    #[test]
    fn a_step_given_by_the_call_does_not_advance_the_steps_of_the_name() {
        let name = name::declared("collector: own step", Location::caller());
        let own = LogRequest {
            step: Some(77),
            ..to(logger())
        };
        let batch = vec![
            record(name, 1, to(logger())),
            record(name, 2, own),
            record(name, 3, to(logger())),
        ];
        assert_eq!(steps(batch), [0, 77, 1]);
    }

    #[test]
    fn a_name_that_is_logged_by_gpu_time_drops_calls_without_one() {
        let name = name::declared("collector: gpu", Location::caller());
        name.decide_time_source(TimeSource::Cuda);
        let before = losses::dropped(DropReason::NoCudaTime);
        assert!(steps(vec![record(name, 1, to(logger()))]).is_empty());
        assert!(losses::dropped(DropReason::NoCudaTime) > before);
    }

    #[test]
    fn the_collector_sleeps_longer_once_nothing_arrives() {
        let mut collector = Collector::default();
        assert_eq!(collector.sleep(), BUSY);
        for _ in 0..QUIET_ROUNDS {
            collector.take_batch();
        }
        assert_eq!(collector.sleep(), IDLE);
        collector.backlog.add_flush(1);
        assert_eq!(collector.sleep(), RETRY);
    }
}
