//! The CPU times of a thread's open scopes, if they are measured.
//!
//! A list beside the guards, in memory of the thread's [`Block`](super::Block). It is empty unless thread times are
//! measured. A scope adds its entry when it opens and removes it when it closes; what a scope took is then part of what
//! the children of the entry below took.

use std::cell::RefCell;

use profiler_host::sync::ReentrancyGuard;

use super::with_state;
use crate::clock::thread_time;

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

/// Begins the thread time of the scope or poll with this serial, which was opened inside the one with serial `outer`.
/// Returns `false` if it is not measured: the system has no such clock, or there is no memory. Reads the clock last.
pub(crate) fn begin_thread_time(serial: u64, outer: u64) -> bool {
    with_times(|times| {
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
    })
    .unwrap_or(false)
}

/// Ends the thread time of the scope or poll with this serial. Returns `None` if it was not measured.
pub(crate) fn end_thread_time(serial: u64) -> Option<ThreadTime> {
    let end = thread_time()?;
    with_times(|times| {
        let place = times.iter().rposition(|open| open.serial == serial)?;
        let open = times.remove(place);
        let total = end.saturating_sub(open.start);
        if let Some(outer) = place.checked_sub(1).and_then(|outer| times.get_mut(outer)) {
            outer.children = outer.children.saturating_add(total);
        }
        Some(ThreadTime {
            total,
            own: total.saturating_sub(open.children),
        })
    })
    .flatten()
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
        let inner = end_thread_time(2).unwrap();
        work();
        let outer = end_thread_time(1).unwrap();
        assert_eq!(inner.own, inner.total);
        assert_eq!(outer.own, outer.total - inner.total);
        assert!(inner.total > 0 && outer.own > 0);
        assert_eq!(end_thread_time(1), None);
    }

    #[test]
    fn a_leaked_scope_is_forgotten_when_the_next_one_opens() {
        assert!(begin_thread_time(1, 0));
        assert!(begin_thread_time(2, 1));
        assert!(begin_thread_time(3, 1));
        assert_eq!(end_thread_time(2), None);
        assert!(end_thread_time(3).is_some());
        assert!(end_thread_time(1).is_some());
    }

    #[test]
    fn a_scope_that_ends_before_a_nested_one_is_timed() {
        assert!(begin_thread_time(1, 0));
        assert!(begin_thread_time(2, 1));
        assert!(end_thread_time(1).is_some());
        assert!(end_thread_time(2).is_some());
    }
}
