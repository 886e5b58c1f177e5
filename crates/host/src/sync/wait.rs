//! Waiting on a condition variable.

use std::sync::PoisonError;
use std::time::Duration;

use crate::process::platform::Instant;
use crate::sync::Locked;
use crate::sync::primitive::Condvar;

/// Waits for a notification, or returns spuriously. Ignores poison.
pub fn wait<'l, T>(condvar: &Condvar, locked: Locked<'l, T>) -> Locked<'l, T> {
    let wait = |guard| {
        let guard = condvar.wait(guard);
        (guard.unwrap_or_else(PoisonError::into_inner), ())
    };
    locked.wait_with(wait).0
}

/// Waits while `condition` holds, for at most `timeout`. Returns `false` on timeout.
///
/// [`std::sync::Condvar::wait_timeout_while`] computes the remaining time with the monotonic clock, and so waits forever
/// if that clock stands still. This function also returns when the system has ended one wait with a timeout.
pub fn wait_while<'l, T>(
    condvar: &Condvar,
    mut locked: Locked<'l, T>,
    timeout: Duration,
    mut condition: impl FnMut(&mut T) -> bool,
) -> (Locked<'l, T>, bool) {
    let end = Instant::now().checked_add(timeout);
    while condition(&mut locked) {
        let left = end.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return (locked, false);
        }
        let (woken, waited) = locked.wait_with(|guard| {
            let woken = condvar.wait_timeout(guard, left);
            woken.unwrap_or_else(PoisonError::into_inner)
        });
        locked = woken;
        if waited.timed_out() {
            let has_ceased = !condition(&mut locked);
            return (locked, has_ceased);
        }
    }
    (locked, true)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;
    use crate::sync::Lock;

    #[test]
    fn a_wait_ends_at_its_timeout() {
        let (never, condvar) = (Lock::new(()), Condvar::new());
        let timeout = Duration::from_millis(1);
        let (_locked, has_ceased) = wait_while(&condvar, never.lock(), timeout, |()| true);
        assert!(!has_ceased);
    }

    #[test]
    fn a_wait_ends_when_its_condition_does() {
        let (number, condvar) = (Lock::new(0), Condvar::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..3 {
                    *number.lock() += 1;
                    condvar.notify_all();
                }
            });
            let is_less = |number: &mut i32| *number < 3;
            let (number, has_ceased) = wait_while(&condvar, number.lock(), Duration::MAX, is_less);
            assert!(has_ceased && *number == 3);
        });
    }
}
