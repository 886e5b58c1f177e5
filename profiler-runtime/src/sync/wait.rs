//! Waiting with a bound that holds whatever the system's clock does.

use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Waits while `condition` holds, `timeout` at most. Returns whether it has ceased to hold.
///
/// [`Condvar::wait_timeout_while`] asks the monotonic clock how much of the time is left, and waits for ever where that
/// stands still. Here a wait that the system has ended is the last one.
pub(crate) fn wait_while<'l, T>(
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use super::*;

    #[test]
    fn what_never_comes_is_waited_for_as_long_as_told() {
        let (never, condvar) = (Mutex::new(()), Condvar::new());
        let guard = never.lock().expect("nobody panics");
        let (_guard, has_ceased) = wait_while(&condvar, guard, Duration::from_millis(1), |()| true);
        assert!(!has_ceased);
    }

    #[test]
    fn what_comes_ends_the_wait() {
        let (number, condvar) = (Mutex::new(0), Condvar::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..3 {
                    *number.lock().expect("nobody panics") += 1;
                    condvar.notify_all();
                }
            });
            let guard = number.lock().expect("nobody panics");
            let (guard, has_ceased) =
                wait_while(&condvar, guard, Duration::MAX, |number| *number < 3);
            assert!(has_ceased && *guard == 3);
        });
    }
}
