//! Re-entrancy: calls of measured code from inside the profiler.

use std::cell::Cell;

thread_local! {
    /// `true` while this thread runs the profiler's own bookkeeping.
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}

/// Marks the thread as running inside the profiler, where it takes locks and allocates.
///
/// A measured global allocator or `tracing` subscriber would call back into the profiler from there: it would measure
/// the profiler, and could deadlock on a lock that its own thread holds. Such calls are not measured, except on the
/// fast path, which takes no lock.
pub struct ReentrancyGuard(());

impl ReentrancyGuard {
    /// Marks the thread until the guard is dropped. Returns `None` if the thread is marked already.
    pub fn try_enter() -> Option<Self> {
        // Construct the guard only on the first entry: its destructor clears the mark.
        if ENTERED.replace(true) {
            None
        } else {
            Some(Self(()))
        }
    }

    /// Returns `true` if the thread is marked.
    #[inline(always)]
    pub fn is_entered() -> bool {
        ENTERED.get()
    }

    /// Marks one of the profiler's own threads for its whole lifetime.
    pub fn enter_permanently() {
        ENTERED.set(true);
    }
}

impl Drop for ReentrancyGuard {
    fn drop(&mut self) {
        ENTERED.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outermost_guard_clears_the_mark() {
        let outer = ReentrancyGuard::try_enter();
        assert!(outer.is_some() && ReentrancyGuard::try_enter().is_none());
        assert!(ReentrancyGuard::is_entered());
        drop(outer);
        assert!(!ReentrancyGuard::is_entered());
    }

    #[test]
    fn a_thread_that_is_marked_permanently_stays_marked() {
        let is_entered = std::thread::spawn(|| {
            ReentrancyGuard::enter_permanently();
            drop(ReentrancyGuard::try_enter());
            ReentrancyGuard::is_entered()
        });
        assert!(is_entered.join().expect("it does not panic"));
        assert!(!ReentrancyGuard::is_entered(), "other threads are not");
    }
}
