//! Requests for a flush, and the wait for the collector's answer.

use std::time::Duration;

use super::collector::FLUSHES;
use super::ledger::EntryCounts;
use super::{collector, held_up, ledger, ring};
use crate::name;

/// Waits until everything that was logged before the call has reached its logger and the loggers are flushed, at most
/// for `timeout`; without one it does not wait. Returns what became of the log entries of this process.
pub(crate) fn flush(timeout: Option<Duration>) -> EntryCounts {
    // A collector that has ended answers nothing: what it did not take is left.
    let is_needed = collector::is_running() || collector::has_ended();
    let is_done = timeout.is_some_and(|timeout| !is_needed || request(timeout));
    let counts = ring::waiting(|waiting| ledger::counts(waiting, is_done));
    EntryCounts {
        dropped: counts.dropped + ring_full(),
        ..counts
    }
}

/// Asks the collector for a flush. Returns `true` if it was done in time.
fn request(timeout: Duration) -> bool {
    let flush_id = FLUSHES.issue();
    collector::wake();
    let is_done = FLUSHES.wait(flush_id, timeout, collector::is_running);
    if !is_done {
        held_up::warn();
    }
    is_done
}

/// Returns how many entries found their thread's ring full. Threads count them in their cells, not in the ledger.
fn ring_full() -> u64 {
    let names = name::all();
    names.iter().map(|name| name.totals().ring_full).sum()
}
