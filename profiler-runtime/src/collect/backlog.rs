//! Jobs that wait for space in the dispatcher's queue.

use std::collections::VecDeque;
use std::thread;

use profiler_host::diagnostics::user_code;
use profiler_log::Logger;
use profiler_report::DropReason;

use super::defaults::fan_out;
use super::entry::LogEntry;
use super::jobs::{Job, QUEUE};
use super::{dispatcher, ledger};

/// Jobs that the dispatcher has not taken yet. Its owner adds no more while there are any, so that it stays short.
#[derive(Default)]
pub(crate) struct Backlog {
    jobs: VecDeque<Job>,
}

impl Backlog {
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Moves as many jobs to the dispatcher as its queue has space for.
    pub(super) fn send(&mut self) {
        if self.is_empty() {
            return;
        }
        dispatcher::ensure_worker();
        QUEUE.push_some(&mut self.jobs);
    }

    /// Adds one job for each logger that takes the entry: `logger`, else the default loggers.
    pub(crate) fn add(&mut self, entry: LogEntry, logger: Option<Logger>) {
        let jobs = self.jobs.len();
        fan_out(entry.name, logger, |recipient| {
            self.jobs.push_back(Job::Deliver(entry, recipient));
        });
        ledger::add_pending(self.jobs.len() - jobs);
    }

    pub(super) fn add_flush(&mut self, flush_id: u64) {
        self.jobs.push_back(Job::Flush(flush_id));
    }
}

#[cfg(test)]
impl Backlog {
    pub(super) fn for_each_job(&self, mut f: impl FnMut(&LogEntry, &super::entry::Recipient)) {
        for job in &self.jobs {
            if let Job::Deliver(entry, recipient) = job {
                f(entry, recipient);
            }
        }
    }
}

impl Drop for Backlog {
    /// Counts the jobs as dropped: the thread panicked, or the process is ending.
    fn drop(&mut self) {
        let reason = if thread::panicking() {
            DropReason::ThreadPanicked
        } else {
            DropReason::NoCollector
        };
        for job in self.jobs.drain(..) {
            if let Job::Deliver(_, recipient) = job {
                ledger::resolve(Err(reason));
                // A logger's destructor is user code, and this may run during a panic.
                user_code::drop_value(recipient);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::SystemTime;

    use super::*;
    use crate::losses;
    use crate::name;
    use profiler_log::IntoLogger;

    /// Sets its flag when it is dropped, and panics.
    struct PanicsInDrop(Arc<AtomicBool>);

    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
            std::panic::panic_any("a test panics");
        }
    }

    fn entry() -> LogEntry {
        LogEntry {
            name: name::declared("backlog: entry", std::panic::Location::caller()),
            milliseconds: 1.0,
            cpu_ms: 1.0,
            cuda: None,
            step: 0,
            wall_time: SystemTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn an_entry_with_a_logger_is_one_job() {
        let mut backlog = Backlog::default();
        backlog.add(entry(), Some((|_: &str, _: f64, _: u64| ()).into_logger()));
        backlog.add_flush(7);
        assert!(matches!(
            *backlog.jobs.make_contiguous(),
            [Job::Deliver(..), Job::Flush(7)]
        ));
    }

    #[test]
    fn dropped_jobs_are_counted_and_their_loggers_contained() {
        let was_dropped = Arc::new(AtomicBool::new(false));
        let value = PanicsInDrop(Arc::clone(&was_dropped));
        let logger = move |_: &str, _: f64, _: u64| {
            let _ = &value;
        };
        let before = losses::dropped(DropReason::NoCollector);
        let mut backlog = Backlog::default();
        backlog.add(entry(), Some(logger.into_logger()));
        drop(backlog);
        assert!(was_dropped.load(Relaxed));
        assert!(losses::dropped(DropReason::NoCollector) > before);
    }
}
