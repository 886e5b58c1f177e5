//! Requests of a flush, and waiting for the collector's answer.

use std::sync::{Condvar, MutexGuard};
use std::time::Duration;

use super::ledger::EntryCounts;
use super::{collector, ledger, ring};
use crate::name;
use crate::sync::{Lock, wait_while};

#[derive(Default)]
struct State {
    wanted: u64,
    done: u64,
}

static STATE: Lock<State> = Lock::new(State { wanted: 0, done: 0 });
static DONE: Condvar = Condvar::new();

fn state() -> MutexGuard<'static, State> {
    STATE.lock()
}

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

/// Asks the collector for a flush; true where it was done in time.
fn request(timeout: Duration) -> bool {
    let mut state = state();
    state.wanted += 1;
    let flush_id = state.wanted;
    drop(state);
    collector::wake();
    wait_for(flush_id, timeout)
}

fn wait_for(flush_id: u64, timeout: Duration) -> bool {
    let (state, _) = wait_while(&DONE, state(), timeout, |state| {
        state.done < flush_id && collector::is_running()
    });
    state.done >= flush_id
}

/// The last flush that was asked for.
pub(super) fn wanted() -> u64 {
    state().wanted
}

/// Has nobody wait any more: the collector has ended.
pub(super) fn give_up() {
    // With the lock taken, nobody is between the look at the collector and the wait.
    drop(state());
    DONE.notify_all();
}

/// Says that all flushes up to this one are done.
pub(super) fn done(flush_id: u64) {
    let mut state = state();
    state.done = state.done.max(flush_id);
    drop(state);
    DONE.notify_all();
}

/// Entries that found their thread's ring full: they have never been anywhere else.
fn ring_full() -> u64 {
    let names = name::all();
    names.iter().map(|name| name.totals().ring_full).sum()
}
