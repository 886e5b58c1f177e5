//! Waiting, bounded, until what was logged has arrived.

use std::sync::{Condvar, MutexGuard};
use std::time::{Duration, Instant};

use super::{collector, ledger, ring};
use crate::cuda;
use crate::exit;
use crate::name;
use crate::process::{Lock, wait_while};

/// What became of the log entries of this process so far. An entry for several loggers is one for each of them.
///
/// Each entry is in one of `delivered`, `dropped` and `left`, so that they add up to what was logged before the call.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// let report = profiler_runtime::flush(Duration::from_secs(1));
/// assert_eq!(report.left, 0, "all that was logged before has arrived");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushReport {
    /// Entries that their loggers took and, as far as they say so, brought to safety.
    pub delivered: u64,
    /// Entries that were dropped; the summary says why.
    pub dropped: u64,
    /// Entries logged before the call that are still on their way: the time did not suffice, or a
    /// logger does not return or cannot save what it took.
    pub left: u64,
    /// Scopes measured before the call whose GPU time has not been read: the device is still at work on
    /// them, or the driver does not answer.
    pub unread: u64,
}

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

/// Waits until the GPU times measured so far have been read, everything logged so far has reached its logger
/// and the loggers are flushed, or until the time is over.
///
/// This is the only thing in the profiler that waits for the device, but for the argument `sync`. Measured
/// threads go on meanwhile. It never waits longer than `timeout`, whatever the loggers do.
///
/// # Examples
///
/// ```
/// let report = profiler_runtime::flush(std::time::Duration::from_millis(100));
/// println!("{} delivered, {} dropped, {} left", report.delivered, report.dropped, report.left);
/// ```
pub fn flush(timeout: Duration) -> FlushReport {
    flush_within(timeout, false)
}

/// The same at the end of a program; then nothing that was made for measuring on the GPU is left.
pub(crate) fn flush_and_close(timeout: Duration) -> FlushReport {
    flush_within(timeout, true)
}

fn flush_within(timeout: Duration, close: bool) -> FlushReport {
    // A forked process has none of our threads: what waits there stays.
    let own = exit::is_own_process();
    let start = Instant::now();
    // Entries may wait for the device; what does not is not to wait for a device that hangs.
    let unread = if own {
        cuda::settle(timeout / 4 * 3, close)
    } else {
        0
    };
    let rest = timeout.saturating_sub(start.elapsed());
    // One that has ended leaves what it had not taken.
    let is_needed = collector::is_running() || collector::has_ended();
    let complete = own && (!is_needed || request(rest));
    // Entries that came after the call are not left of what it asked for; those that a blocked logger holds are.
    let account = ring::waiting(|waiting| ledger::account(waiting, complete));
    FlushReport {
        delivered: account.delivered,
        dropped: account.dropped + ring_full(),
        left: account.left,
        unread,
    }
}

/// Asks the collector for a flush; true where it was done in time.
fn request(timeout: Duration) -> bool {
    let mut state = state();
    state.wanted += 1;
    let ticket = state.wanted;
    drop(state);
    collector::wake();
    wait_for(ticket, timeout)
}

fn wait_for(ticket: u64, timeout: Duration) -> bool {
    let (state, _) = wait_while(&DONE, state(), timeout, |state| {
        state.done < ticket && collector::is_running()
    });
    state.done >= ticket
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
pub(super) fn done(ticket: u64) {
    let mut state = state();
    state.done = state.done.max(ticket);
    drop(state);
    DONE.notify_all();
}

/// Entries that found their thread's ring full: they have never been anywhere else.
fn ring_full() -> u64 {
    let names = name::all();
    names.iter().map(|name| name.totals().ring_full).sum()
}
