//! What waits for room in the queue of the dispatcher.

use std::collections::VecDeque;
use std::thread;
use std::time::SystemTime;

use super::dispatcher::{self, Delivery, Job, deliver_here};
use super::{collector, defaults, ledger};
use crate::diagnostics::user_code;
use crate::diagnostics::{DropReason, count_dropped};
use crate::log::{CudaSpan, Logger};
use crate::name::CircuitBreaker;
use crate::name::Name;
use crate::process::fork;
use crate::sync::ReentrancyGuard;

/// One entry, complete but for its loggers.
#[derive(Clone, Copy)]
pub(crate) struct LogEntry {
    pub(crate) name: &'static Name,
    /// The value: GPU or CPU time, whichever the name is logged by.
    pub(crate) milliseconds: f64,
    pub(crate) cpu_ms: f64,
    pub(crate) cuda: Option<CudaSpan>,
    pub(crate) step: u64,
    pub(crate) wall_time: SystemTime,
}

/// Jobs that the dispatcher has not taken yet; whoever fills it waits while there are any.
#[derive(Default)]
pub(crate) struct Backlog {
    jobs: VecDeque<Job>,
}

impl Backlog {
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Passes on what there is room for.
    pub(crate) fn send(&mut self) {
        // It looks after the dispatcher, and answers whoever waits for a flush.
        if !self.is_empty() {
            collector::ensure_started();
        }
        dispatcher::send(&mut self.jobs);
    }

    /// Adds one job for each logger that takes an entry: its own, else the default ones.
    pub(crate) fn add(&mut self, entry: LogEntry, logger: Option<Logger>) {
        let jobs = self.jobs.len();
        fan_out(entry, logger, |delivery| {
            self.jobs.push_back(Job::Log(delivery));
        });
        ledger::expect(self.jobs.len() - jobs);
    }

    pub(super) fn add_flush(&mut self, flush_id: u64) {
        self.jobs.push_back(Job::Flush(flush_id));
    }
}

impl Drop for Backlog {
    /// Counts what goes with it where its thread panicked, or the process is ending.
    fn drop(&mut self) {
        let reason = if thread::panicking() {
            DropReason::ThreadPanicked
        } else {
            DropReason::NoCollector
        };
        for job in self.jobs.drain(..) {
            if let Job::Log(delivery) = job {
                ledger::end(Err(reason));
                // Its logger is foreign code.
                user_code::drop_value(delivery);
            }
        }
    }
}

/// Hands an entry to its loggers on this thread, at once.
pub(crate) fn log_here(entry: LogEntry, logger: Option<Logger>) {
    // A forked child logs nothing.
    if fork::is_child() {
        user_code::drop_value(logger);
        return count_dropped(DropReason::NoCollector, 1);
    }
    // It is not to be measured, as on a thread of the profiler's. Before any lock is taken: what starting a thread
    // allocates would come back to that lock where the allocator is measured itself.
    let _busy = ReentrancyGuard::try_enter();
    // It takes what `flush` asks for to the loggers, these too.
    collector::ensure_started();
    dispatcher::ensure_worker();
    fan_out(entry, logger, deliver_here);
}

fn fan_out(entry: LogEntry, logger: Option<Logger>, mut send: impl FnMut(Delivery)) {
    let mut to = |(logger, breaker): (Logger, &'static CircuitBreaker)| {
        send(Delivery {
            name: entry.name,
            milliseconds: entry.milliseconds,
            cpu_ms: entry.cpu_ms,
            cuda: entry.cuda,
            step: entry.step,
            wall_time: entry.wall_time,
            logger,
            breaker,
        });
    };
    match logger {
        Some(logger) => to((logger, &entry.name.breaker)),
        None => defaults::all().into_iter().for_each(to),
    }
}
