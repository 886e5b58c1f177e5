//! The thread that empties the rings of all threads, and calls the loggers.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Duration;

use profiler_host::background::Background;
use profiler_host::diagnostics::user_code;
use profiler_host::process::platform::Instant;
use profiler_host::sync::Requests;
use profiler_log::Logger;
use profiler_report::{DropReason, TimeSource};

use super::deliver::deliver;
use super::entry::{LogEntry, Recipient};
use super::gpu_entries::GpuEntry;
use super::{defaults, held_up, ledger, ring, unflushed};
use crate::clock::{WallAnchor, clock};
use crate::log_record::LogRecord;
use crate::losses;
use crate::name::{self, Name};
use crate::own_cost;
use crate::switch;

/// How many calls of [`hold`] run: while one does, entries stay in the rings unless a flush is requested.
static HOLDS: AtomicU32 = AtomicU32::new(0);

static THREAD: Background = Background::new("profiler-log", run, ended);
/// Requests for a flush of all loggers.
pub(super) static FLUSHES: Requests = Requests::new();

/// How long the collector sleeps while records arrive. At 10,000 calls a second a thread fills half of its ring in this
/// time; a faster one wakes the collector.
const BUSY: Duration = Duration::from_millis(100);
/// How often loggers are flushed while entries arrive. With a nap as long, an entry is saved within a second.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// Starts the collector if it is not running. Returns `false` if it cannot be started.
pub(super) fn ensure_started() -> bool {
    THREAD.ensure_started("single calls are not logged, the summary is still exact")
}

pub(super) fn is_running() -> bool {
    THREAD.is_running()
}

/// Has the collector empty the rings soon. Cheap if it was woken already.
pub(super) fn wake() {
    THREAD.wake();
}

/// Has the collector empty the rings if it does not do so by itself. Called after a push.
#[inline(always)]
pub(super) fn wake_if_dozing() {
    THREAD.wake_if_dozing();
}

/// Runs `f`, and leaves entries in the rings after a flush that it requests: what loggers have taken is saved then.
pub(crate) fn hold<T>(f: impl FnOnce() -> T) -> T {
    struct EndOnDrop;
    impl Drop for EndOnDrop {
        fn drop(&mut self) {
            HOLDS.fetch_sub(1, Release);
            wake();
        }
    }
    // Before the request, whose round sees it: the one after that takes nothing.
    HOLDS.fetch_add(1, Release);
    let _end = EndOnDrop;
    f()
}

/// Returns `true` if the collector has ended after too many panics.
pub(super) fn has_ended() -> bool {
    THREAD.has_ended()
}

/// Counts the waiting records as dropped and releases threads that wait for a flush. Called when the collector ends.
fn ended() {
    Collector::default()
        .drain()
        .drop_all(DropReason::NoCollector);
    FLUSHES.recheck_served();
}

fn run() {
    switch::write_before_ending();
    let mut collector = Collector::default();
    let mut sleeper = THREAD.sleeper();
    held_up::leave();
    loop {
        THREAD.clear_wakeup();
        let nap = collector.round();
        losses::warn_of_drops();
        own_cost::note_background();
        sleeper.sleep_or_doze(nap);
    }
}

/// State of the collector's thread. Its destructor counts what a panic has left in it.
#[derive(Default)]
struct Collector {
    /// The records that were not delivered yet, the first one last.
    records: Vec<LogRecord>,
    /// The entries of the resolver, likewise.
    entries: Vec<GpuEntry>,
    /// How many entries are pending but in neither list: the entry of the call at hand, once for each logger.
    at_hand: u64,
    names: Vec<&'static Name>,
    /// The default loggers, as of this round.
    defaults: Vec<Recipient>,
    /// Since when loggers that took entries wait for a flush.
    unflushed_since: Option<Instant>,
}

impl Collector {
    /// Empties the rings once, and calls the loggers. Returns how long to sleep until the next round, or `None` if there is
    /// nothing to do until something is logged.
    fn round(&mut self) -> Option<Duration> {
        // Read before the rings are: records that were pushed before the request are then in this batch.
        let requested = FLUSHES.issued();
        let is_requested = requested > FLUSHES.answered();
        if HOLDS.load(Acquire) > 0 && !is_requested {
            return Some(BUSY);
        }
        let is_quiet = self.drain().is_empty();
        self.deliver_all();
        let is_due = self.until_flush().is_some_and(|time| time.is_zero());
        if is_due || is_requested {
            unflushed::flush_all();
            self.unflushed_since = None;
        }
        if is_requested {
            FLUSHES.answer_up_to(requested);
        }
        // A logger that could not save everything is flushed again, and so is one that a measured thread has called.
        if !unflushed::are_any() {
            self.unflushed_since = None;
        } else if self.unflushed_since.is_none() {
            self.unflushed_since = Some(Instant::now());
        }
        let until_flush = self.until_flush();
        if is_quiet {
            until_flush
        } else {
            Some(until_flush.map_or(BUSY, |time| time.min(BUSY)))
        }
    }

    /// Returns the time until loggers are flushed, if some wait for that.
    fn until_flush(&self) -> Option<Duration> {
        let since = self.unflushed_since?;
        Some(FLUSH_EVERY.saturating_sub(since.elapsed()))
    }

    /// Takes what is in the rings.
    fn drain(&mut self) -> &mut Self {
        ring::drain(&mut self.records, &mut self.entries);
        // After the rings: a call that was logged after a default logger was added goes to that logger.
        self.defaults = if self.is_empty() {
            Vec::new()
        } else {
            defaults::all()
        };
        // Each ring is in order. Across threads, steps follow the ends of the calls. Sorting allocates, and one thread needs none.
        if !self.records.is_sorted_by_key(|record| record.end) {
            self.records.sort_by_key(|record| record.end);
        }
        self.records.reverse();
        self.entries.reverse();
        self
    }

    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.entries.is_empty()
    }

    fn deliver_all(&mut self) {
        if !self.records.is_empty() {
            let anchor = WallAnchor::now();
            while let Some(record) = self.records.pop() {
                self.at_hand = 1;
                self.deliver_record(record, anchor);
            }
        }
        while let Some((entry, logger)) = self.entries.pop() {
            self.at_hand = 1;
            self.deliver_entry(&entry, logger);
        }
    }

    /// Records the outcome of the entry at hand: no logger gets it.
    fn drop_one(&mut self, reason: DropReason, logger: Option<Logger>) {
        self.at_hand = 0;
        ledger::resolve(Err(reason));
        // A logger's destructor is user code.
        user_code::drop_value(logger);
    }

    /// Counts everything as dropped.
    fn drop_all(&mut self, reason: DropReason) {
        while let Some(record) = self.records.pop() {
            self.drop_one(reason, record.request.logger);
        }
        while let Some((_, logger)) = self.entries.pop() {
            self.drop_one(reason, logger);
        }
    }

    /// Completes a record, and delivers it.
    fn deliver_record(&mut self, record: LogRecord, anchor: WallAnchor) {
        let LogRecord { request, .. } = record;
        let Some(name) = self.name(record.id) else {
            self.at_hand = 0;
            user_code::drop_value(request);
            return ledger::remove_pending(1);
        };
        let own_step = || next_step(name, request.skipped, request.every);
        let step = request.step.unwrap_or_else(own_step);
        if name.decide_time_source(TimeSource::Cpu) == TimeSource::Cuda {
            return held_up::call(name.id, || {
                self.drop_one(DropReason::NoCudaTime, request.logger);
            });
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
        self.deliver_entry(&entry, request.logger);
    }

    /// Delivers an entry to `logger`, else to the default loggers.
    fn deliver_entry(&mut self, entry: &LogEntry, logger: Option<Logger>) {
        if let Some(logger) = logger {
            let breaker = &entry.name.breaker;
            return self.deliver_to(entry, Recipient { logger, breaker });
        }
        let loggers = self.defaults.len();
        // Pending is one entry for each logger, in place of the one that left the ring.
        ledger::add_pending(loggers);
        ledger::remove_pending(1);
        self.at_hand = loggers as u64;
        for index in 0..loggers {
            if let Some(recipient) = self.defaults[index].share() {
                self.deliver_to(entry, recipient);
            } else {
                self.at_hand -= 1;
                ledger::remove_pending(1);
            }
        }
    }

    fn deliver_to(&mut self, entry: &LogEntry, recipient: Recipient) {
        if let Some(oldest) = held_up::call(entry.name.id, || deliver(entry, recipient)) {
            held_up::call(oldest.id(), || unflushed::flush_for_the_last_time(oldest));
        }
        self.at_hand -= 1;
    }

    fn name(&mut self, id: u32) -> Option<&'static Name> {
        if id as usize >= self.names.len() {
            self.names = name::all();
        }
        self.names.get(id as usize).copied()
    }
}

impl Drop for Collector {
    /// Counts what a panic of the thread has left behind.
    fn drop(&mut self) {
        for _ in 0..self.at_hand {
            ledger::resolve(Err(DropReason::ThreadPanicked));
        }
        self.drop_all(DropReason::ThreadPanicked);
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
    use std::sync::mpsc::{Sender, channel};

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

    /// A logger that notes the steps of its entries.
    fn noting(steps: &Sender<u64>) -> Logger {
        let steps = steps.clone();
        (move |_: &str, _: f64, step: u64| steps.send(step)).into_logger()
    }

    /// Delivers what `make` makes of the end of a channel for steps, and returns the steps.
    fn steps(make: impl FnOnce(&Sender<u64>) -> Vec<LogRecord>) -> Vec<u64> {
        let (sender, receiver) = channel();
        let mut collector = Collector::default();
        let records = make(&sender);
        ledger::add_pending(records.len());
        // The first one is the last.
        collector.records = records.into_iter().rev().collect();
        collector.deliver_all();
        drop(sender);
        receiver.try_iter().collect()
    }

    #[test]
    fn records_that_are_lost_in_a_panic_are_counted() {
        let name = name::declared("collector: panics", Location::caller());
        let before = losses::dropped(DropReason::ThreadPanicked);
        let panicked = user_code::call(|| {
            let mut collector = Collector::default();
            let record = || record(name, 0, LogRequest::new(1));
            collector.records.extend([record(), record(), record()]);
            collector.at_hand = 1;
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
        let mut rings = [30, 10, 20].map(|end: u64| {
            let sender = sender.clone();
            let logs_end = move |_: &str, _: f64, step: u64| sender.send((step, end));
            let mut ring = ring::RINGS.add(1, ()).expect("there is memory");
            let record = record(name, end, to(logs_end.into_logger()));
            assert!(ring.push(record).is_ok());
            ring
        });
        let mut collector = Collector::default();
        collector.drain().deliver_all();
        assert!(rings.iter_mut().all(|ring| !ring.is_half_full()));
        let logged: Vec<_> = receiver.try_iter().collect();
        assert_eq!(logged, [(0, 10), (1, 20), (2, 30)]);
    }

    #[test]
    fn a_step_given_by_the_call_does_not_advance_the_steps_of_the_name() {
        let name = name::declared("collector: own step", Location::caller());
        let noted = steps(|sender| {
            let own = LogRequest {
                step: Some(77),
                ..to(noting(sender))
            };
            vec![
                record(name, 1, to(noting(sender))),
                record(name, 2, own),
                record(name, 3, to(noting(sender))),
            ]
        });
        assert_eq!(noted, [0, 77, 1]);
    }

    #[test]
    fn a_name_that_is_logged_by_gpu_time_drops_calls_without_one() {
        let name = name::declared("collector: gpu", Location::caller());
        name.decide_time_source(TimeSource::Cuda);
        let before = losses::dropped(DropReason::NoCudaTime);
        let noted = steps(|sender| vec![record(name, 1, to(noting(sender)))]);
        assert!(noted.is_empty());
        assert!(losses::dropped(DropReason::NoCudaTime) > before);
    }
}
