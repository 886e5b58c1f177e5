//! Requests of a flush, and waiting for the collector's answer.

use std::time::Duration;

use super::ledger::EntryCounts;
use super::{collector, ledger, ring};
use crate::name;
use crate::sync::Requests;

static REQUESTS: Requests = Requests::new();

/// Waits until everything logged so far has reached its logger and the loggers are flushed, or until the time is over;
/// without a time it does not wait. Returns what became of the log entries of this process so far.
pub(crate) fn flush(timeout: Option<Duration>) -> EntryCounts {
    // A collector that has ended leaves what it had not taken.
    let is_needed = collector::is_running() || collector::has_ended();
    let complete = timeout.is_some_and(|timeout| !is_needed || request(timeout));
    // Entries that came after the call are not left of what it asked for; those that a blocked logger holds are.
    let account = ring::waiting(|waiting| ledger::account(waiting, complete));
    EntryCounts {
        dropped: account.dropped + ring_full(),
        ..account
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

/// Entries that found their thread's ring full: they have never been anywhere else.
fn ring_full() -> u64 {
    let names = name::all();
    names.iter().map(|name| name.totals().ring_full).sum()
}
