//! Waiting on a condition variable.

use std::sync::PoisonError;
use std::time::Duration;

use crate::process::platform::Instant;
use crate::sync::primitive::{Condvar, MutexGuard};

/// Waits for a notification, or returns spuriously. Ignores poison.
pub fn wait<'l, T>(condvar: &Condvar, guard: MutexGuard<'l, T>) -> MutexGuard<'l, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Waits while `condition` holds, for at most `timeout`. Returns `false` on timeout.
///
/// [`std::sync::Condvar::wait_timeout_while`] computes the remaining time with the monotonic clock, and so waits forever
/// if that clock stands still. This function also returns when the system has ended one wait with a timeout.
pub fn wait_while<'l, T>(
    condvar: &Condvar,
    mut guard: MutexGuard<'l, T>,
    timeout: Duration,
    mut condition: impl FnMut(&mut T) -> bool,
) -> (MutexGuard<'l, T>, bool) {
    let end = Instant::now().checked_add(timeout);
    while condition(&mut guard) {
        let left = end.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return (guard, false);
        }
        let (woken, waited) = condvar
            .wait_timeout(guard, left)
            .unwrap_or_else(PoisonError::into_inner);
        guard = woken;
        if waited.timed_out() {
            let has_ceased = !condition(&mut guard);
            return (guard, has_ceased);
        }
    }
    (guard, true)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use super::*;

    #[test]
    fn a_wait_ends_at_its_timeout() {
        let (never, condvar) = (Mutex::new(()), Condvar::new());
        let guard = never.lock().expect("no thread panics");
        let (_guard, has_ceased) = wait_while(&condvar, guard, Duration::from_millis(1), |()| true);
        assert!(!has_ceased);
    }

    #[test]
    fn a_wait_ends_when_its_condition_does() {
        let (number, condvar) = (Mutex::new(0), Condvar::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..3 {
                    *number.lock().expect("no thread panics") += 1;
                    condvar.notify_all();
                }
            });
            let guard = number.lock().expect("no thread panics");
            let (guard, has_ceased) =
                wait_while(&condvar, guard, Duration::MAX, |number| *number < 3);
            assert!(has_ceased && *guard == 3);
        });
    }
}
