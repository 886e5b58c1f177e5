//! The one thread that empties the rings.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use super::backlog::{Backlog, LogEntry};
use super::{dispatcher, flush, ledger, ring};
use crate::background::Background;
use crate::clock::{WallAnchor, clock};
use crate::diagnostics::DropReason;
use crate::diagnostics::user_code;
use crate::log::LogRecord;
use crate::name::{self, Name, TimeSource};
use crate::own_cost;
use crate::sync::RaceCell;

static THREAD: Background = Background::new("profiler-collector", run, ended);

/// While loggers keep it waiting.
const RETRY: Duration = Duration::from_millis(1);
/// While records come: a thread fills half of its ring in this time at 100,000 calls a second, and
/// calls the collector where it is faster.
const BUSY: Duration = Duration::from_millis(10);
/// When nothing came for a while. Together with the dispatcher's own half second an entry is safe within
/// a second.
const IDLE: Duration = Duration::from_millis(200);
/// How many rounds without a record make it idle.
const QUIET_ROUNDS: u32 = 50;

/// Starts the collector if it is not running; false where it cannot be.
pub(super) fn ensure_started() -> bool {
    THREAD.ensure_started("single calls are not logged, the summary is still exact")
}

pub(super) fn is_running() -> bool {
    THREAD.is_running()
}

/// Has the collector look at the rings soon. Cheap to call again and again.
pub(super) fn wake() {
    THREAD.wake();
}

/// Whether it has ended, after too many panics.
pub(super) fn has_ended() -> bool {
    THREAD.has_ended()
}

/// What waits for it is counted, and whoever waits is told.
fn ended() {
    let mut batch = Vec::new();
    ring::drain(&mut batch);
    give_up(batch, DropReason::NoCollector);
    flush::give_up();
}

/// Counts records that no logger gets.
fn give_up(records: impl IntoIterator<Item = LogRecord>, reason: DropReason) {
    for record in records {
        ledger::end(Err(reason));
        // Loggers are foreign code, and this may be in the middle of a panic.
        user_code::drop_value(record);
    }
}

/// What to call once a round.
static ON_EACH_ROUND: RaceCell<fn()> = RaceCell::new();

/// Has `hook` called in each round of the collector, whose thread has the time.
pub(crate) fn on_each_round(hook: fn()) {
    ON_EACH_ROUND.get_or_init(|| hook);
}

fn run() {
    let mut collector = Collector::default();
    loop {
        THREAD.clear_wakeup();
        let nap = collector.round();
        dispatcher::supervise();
        if let Some(hook) = ON_EACH_ROUND.get() {
            hook();
        }
        own_cost::note_background();
        thread::park_timeout(nap);
    }
}

#[derive(Default)]
struct Collector {
    batch: Vec<LogRecord>,
    /// What is being delivered: the rest of the batch.
    rest: VecDeque<LogRecord>,
    /// Whether one record is neither in `rest` nor in the backlog.
    has_one: bool,
    /// What the dispatcher has not taken yet; the rings wait while there is anything.
    backlog: Backlog,
    names: Vec<&'static Name>,
    /// The last flush that was passed on.
    flushed: u64,
    quiet: u32,
}

impl Collector {
    /// Empties the rings once; says how long to wait until the next time.
    fn round(&mut self) -> Duration {
        if self.backlog.is_empty() {
            // Asked before the rings are read: what was pushed before the asking is read now.
            let wanted = flush::requested();
            self.collect();
            if wanted > self.flushed {
                self.flushed = wanted;
                self.backlog.add_flush(wanted);
                self.quiet = 0;
            }
        }
        self.backlog.send();
        if !self.backlog.is_empty() {
            RETRY
        } else if self.quiet < QUIET_ROUNDS {
            BUSY
        } else {
            IDLE
        }
    }

    fn collect(&mut self) {
        ring::drain(&mut self.batch);
        if self.batch.is_empty() {
            self.quiet = self.quiet.saturating_add(1);
            return;
        }
        self.quiet = 0;
        // Each ring is in order already; among threads, steps are given in the order of time.
        self.batch.sort_by_key(|record| record.end);
        let anchor = WallAnchor::now();
        self.rest.extend(self.batch.drain(..));
        while let Some(record) = self.rest.pop_front() {
            self.has_one = true;
            self.deliver(record, anchor);
            self.has_one = false;
        }
    }

    /// Turns a record into one job for each logger that takes it.
    fn deliver(&mut self, record: LogRecord, anchor: WallAnchor) {
        let Some(name) = self.name(record.id) else {
            return ledger::forget(1);
        };
        let step = record
            .step
            .unwrap_or_else(|| next_step(name, record.skipped, record.every));
        if name.decide_time_source(TimeSource::Cpu) == TimeSource::Cuda {
            ledger::end(Err(DropReason::NoCudaTime));
            // Its destructor may be foreign code.
            user_code::drop_value(record.logger);
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
        self.backlog.add(entry, record.logger);
        // It is one entry for each logger from here on.
        ledger::forget(1);
    }

    fn name(&mut self, id: u32) -> Option<&'static Name> {
        if id as usize >= self.names.len() {
            self.names = name::all();
        }
        self.names.get(id as usize).copied()
    }
}

impl Drop for Collector {
    /// Counts what goes with it where the thread panicked.
    fn drop(&mut self) {
        if self.has_one {
            ledger::end(Err(DropReason::ThreadPanicked));
        }
        let records = self.batch.drain(..).chain(self.rest.drain(..));
        give_up(records, DropReason::ThreadPanicked);
    }
}

/// The name's own count of calls. Entries that were dropped leave a gap: the next one's step is still
/// its call's number.
pub(crate) fn next_step(name: &Name, skipped: u64, every: u32) -> u64 {
    let calls = skipped + u64::from(every);
    name.next_step.fetch_add(calls, Relaxed) + skipped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics;
    use crate::diagnostics::catch_own_panic;

    #[test]
    fn what_a_panic_takes_with_it_is_counted() {
        let name = name::declared("collector: panics", std::panic::Location::caller());
        let record = || LogRecord {
            id: name.id,
            end: 0,
            elapsed: 0,
            step: None,
            every: 1,
            skipped: 0,
            logger: None,
        };
        let before = diagnostics::dropped(DropReason::ThreadPanicked);
        let panicked = catch_own_panic("a test panicked", || {
            let mut collector = Collector::default();
            collector.batch.push(record());
            collector.rest.extend([record(), record()]);
            collector.has_one = true;
            std::panic::panic_any("a test panics");
        });
        assert!(panicked.is_none());
        let lost = diagnostics::dropped(DropReason::ThreadPanicked) - before;
        // Other tests lose some too.
        assert!(lost >= 4, "{lost}");
    }

    #[test]
    fn a_dropped_entry_leaves_a_gap_in_the_steps() {
        let name = name::declared("collector: gaps", std::panic::Location::caller());
        let steps = [0, 0, 30, 0].map(|skipped| next_step(name, skipped, 10));
        assert_eq!(steps, [0, 10, 50, 60]);
    }
}
