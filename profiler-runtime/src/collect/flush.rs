//! Requests for a flush, and the wait for the dispatcher's answer.

use std::time::Duration;

use super::ledger::EntryCounts;
use super::{collector, ledger, ring};
use crate::name;
use crate::sync::Requests;

static REQUESTS: Requests = Requests::new();

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
    let flush_id = REQUESTS.issue();
    collector::wake();
    REQUESTS.wait(flush_id, timeout, collector::is_running)
}

/// Returns the id of the latest flush that was requested.
pub(super) fn requested() -> u64 {
    REQUESTS.issued()
}

/// Ends the wait of all threads: the collector has ended.
pub(super) fn give_up() {
    REQUESTS.recheck_served();
}

/// Notes that all flushes up to this one are done.
pub(super) fn done(flush_id: u64) {
    REQUESTS.answer_up_to(flush_id);
}

/// Returns how many entries found their thread's ring full. Threads count them in their cells, not in the ledger.
fn ring_full() -> u64 {
    let names = name::all();
    names.iter().map(|name| name.totals().ring_full).sum()
}
