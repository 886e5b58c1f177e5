//! The CPU times of a thread's open scopes, if they are measured.
//!
//! A list beside the guards, in memory of the thread's [`Block`](super::Block). It is empty unless thread times are
//! measured. A scope adds its entry when it opens and removes it when it closes; what a scope took is then part of what
//! the children of the entry below took.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use profiler_host::sync::ReentrancyGuard;

use super::with_state;
use crate::clock::{clock, now, thread_time};

/// Open scopes that a thread keeps thread times for. Those further inside have none; their time is in that of the
/// scopes around them.
const MAX_OPEN: usize = 1 << 16;

/// An open scope.
#[derive(Debug)]
pub(super) struct OpenTime {
    serial: u64,
    /// The thread time at which it opened, in nanoseconds.
    start: u64,
    /// The thread time of its closed children, in nanoseconds.
    children: u64,
}

/// The open scopes of a thread, oldest first.
pub(super) type ThreadTimes = RefCell<Vec<OpenTime>>;

/// The thread time of a closed scope, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadTime {
    pub(crate) total: u64,
    /// Without the scopes inside it.
    pub(crate) own: u64,
}

/// What the thread time of a scope around nothing contains, in nanoseconds.
static IN_TIME: AtomicU64 = AtomicU64::new(0);
/// What measuring a thread time takes, in ticks.
static COST: AtomicU64 = AtomicU64::new(0);

/// Measures what a thread time costs, before the first one is measured, and has [`end_thread_time`] subtract what it contains of
/// that: reading the thread's clock is a system call, and takes longer than many functions.
pub(crate) fn calibrate_thread_time() {
    const SCOPES: usize = 65;
    let mut times = Vec::new();
    let mut scopes = [(); SCOPES].map(|()| {
        let start = now();
        begin(&mut times, 1, 0);
        let time = end(&mut times, 1, (0, u64::MAX));
        (
            time.map_or(0, |time| time.total),
            now().saturating_sub(start),
        )
    });
    // The least, so that no function seems to take less than it did.
    let in_time = scopes.iter().map(|(time, _)| *time).min();
    IN_TIME.store(in_time.unwrap_or(0), Relaxed);
    // The median: some are interrupted, and the fastest are not usual.
    scopes.sort_unstable_by_key(|(_, ticks)| *ticks);
    let cost = scopes.get(SCOPES / 2).map_or(0, |(_, ticks)| *ticks);
    COST.store(cost, Relaxed);
}

/// Returns what measuring a thread time takes, in nanoseconds; zero before it was calibrated.
pub(crate) fn thread_time_cost() -> f64 {
    clock().nanoseconds(COST.load(Relaxed) as f64)
}

/// Begins the thread time of the scope or poll with this serial, which was opened inside the one with serial `outer`.
/// Returns `false` if it is not measured: the system has no such clock, or there is no memory. Reads the clock last.
pub(crate) fn begin_thread_time(serial: u64, outer: u64) -> bool {
    with_times(|times| begin(times, serial, outer)).unwrap_or(false)
}

fn begin(times: &mut Vec<OpenTime>, serial: u64, outer: u64) -> bool {
    // Scopes younger than the one around this one are closed, or their guards were leaked.
    while times.last().is_some_and(|open| open.serial > outer) {
        times.pop();
    }
    if times.len() >= MAX_OPEN || times.try_reserve(1).is_err() {
        return false;
    }
    let start = thread_time();
    times.extend(start.map(|start| OpenTime {
        serial,
        start,
        children: 0,
    }));
    start.is_some()
}

/// Ends the thread time of the scope or poll with this serial, which took `elapsed` ticks. Returns `None` if it was not
/// measured.
pub(crate) fn end_thread_time(serial: u64, elapsed: i64) -> Option<ThreadTime> {
    // Reading the thread's clock takes so long that the time may be longer than the elapsed one even so.
    let elapsed = clock().nanoseconds(elapsed.max(0) as f64);
    // Rounded down, so that the sum of all is no longer than the sum of the elapsed times.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and less than centuries"
    )]
    let limits = (IN_TIME.load(Relaxed), elapsed as u64);
    with_times(|times| end(times, serial, limits)).flatten()
}

/// [`end_thread_time`] with what the time contains of its own cost, and the longest that it may be.
fn end(times: &mut Vec<OpenTime>, serial: u64, (cost, longest): (u64, u64)) -> Option<ThreadTime> {
    let end = thread_time()?;
    let place = times.iter().rposition(|open| open.serial == serial)?;
    let open = times.remove(place);
    let total = end
        .saturating_sub(open.start)
        .saturating_sub(cost)
        .min(longest);
    if let Some(outer) = place.checked_sub(1).and_then(|outer| times.get_mut(outer)) {
        outer.children = outer.children.saturating_add(total);
    }
    Some(ThreadTime {
        total,
        own: total.saturating_sub(open.children),
    })
}

fn with_times<T>(f: impl FnOnce(&mut Vec<OpenTime>) -> T) -> Option<T> {
    // The list allocates, with an allocator that may itself be measured.
    let _reentrancy = ReentrancyGuard::try_enter();
    let block = with_state(super::ThreadState::block).flatten()?;
    let mut times = block.thread_times.try_borrow_mut().ok()?;
    Some(f(&mut times))
}

// Miri does not know the clock of a thread.
#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;

    fn work() {
        let start = thread_time();
        while thread_time() == start {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn own_time_excludes_nested_scopes() {
        assert!(begin_thread_time(1, 0));
        work();
        assert!(begin_thread_time(2, 1));
        work();
        let inner = end_thread_time(2, i64::MAX).unwrap();
        work();
        let outer = end_thread_time(1, i64::MAX).unwrap();
        assert_eq!(inner.own, inner.total);
        assert_eq!(outer.own, outer.total - inner.total);
        assert!(inner.total > 0 && outer.own > 0);
        assert_eq!(end_thread_time(1, i64::MAX), None);
    }

    #[test]
    fn a_leaked_scope_is_forgotten_when_the_next_one_opens() {
        assert!(begin_thread_time(1, 0));
        assert!(begin_thread_time(2, 1));
        assert!(begin_thread_time(3, 1));
        assert_eq!(end_thread_time(2, i64::MAX), None);
        assert!(end_thread_time(3, i64::MAX).is_some());
        assert!(end_thread_time(1, i64::MAX).is_some());
    }

    #[test]
    fn a_scope_that_ends_before_a_nested_one_is_timed() {
        assert!(begin_thread_time(1, 0));
        assert!(begin_thread_time(2, 1));
        assert!(end_thread_time(1, i64::MAX).is_some());
        assert!(end_thread_time(2, i64::MAX).is_some());
    }
}
