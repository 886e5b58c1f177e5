//! Re-entrancy: calls of measured code from inside the profiler.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// How many times this thread has entered the profiler and not left it: more than 0 while it runs the profiler's own
    /// bookkeeping.
    static ENTERED: Cell<u32> = const { Cell::new(0) };
}

/// So many entries that a thread never leaves the profiler.
const FOREVER: u32 = 1 << 31;

/// Marks the thread as running inside the profiler, where it takes locks and allocates.
///
/// A measured global allocator or `tracing` subscriber would call back into the profiler from there, and a signal handler
/// may: it would measure the profiler, and could deadlock on a lock that its own thread holds. Such calls are not
/// measured, except on the fast path, which takes no lock.
///
/// A [`Lock`](super::Lock) marks the thread for as long as it is held. So a call that is refused inside the profiler never
/// waits for its own thread.
#[derive(Debug)]
pub struct ReentrancyGuard(
    /// The mark is that of the thread.
    PhantomData<*const ()>,
);

impl ReentrancyGuard {
    /// Marks the thread until the guard is dropped. Returns `None` if the thread is marked already.
    pub fn try_enter() -> Option<Self> {
        (!Self::is_entered()).then(Self::enter)
    }

    /// [`try_enter`](Self::try_enter), which one of the profiler's own threads may do too while it runs code of the user: it then
    /// holds no lock.
    pub fn try_enter_unless_busy() -> Option<Self> {
        (ENTERED.get() & !FOREVER == 0).then(Self::enter)
    }

    /// Marks the thread until the guard is dropped, also if it is marked already.
    pub(super) fn enter() -> Self {
        ENTERED.set(ENTERED.get() + 1);
        Self(PhantomData)
    }

    /// Returns `true` if the thread is marked.
    #[inline(always)]
    pub fn is_entered() -> bool {
        ENTERED.get() != 0
    }

    /// Marks one of the profiler's own threads for its whole lifetime.
    pub fn enter_permanently() {
        ENTERED.set(ENTERED.get() | FOREVER);
    }
}

impl Drop for ReentrancyGuard {
    fn drop(&mut self) {
        ENTERED.set(ENTERED.get() - 1);
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
    fn guards_may_be_dropped_in_any_order() {
        let first = ReentrancyGuard::enter();
        let second = ReentrancyGuard::enter();
        drop(first);
        assert!(ReentrancyGuard::is_entered());
        drop(second);
        assert!(!ReentrancyGuard::is_entered());
    }

    #[test]
    fn a_thread_that_is_marked_permanently_stays_marked() {
        let is_entered = std::thread::spawn(|| {
            ReentrancyGuard::enter_permanently();
            drop(ReentrancyGuard::try_enter());
            let between = ReentrancyGuard::try_enter_unless_busy();
            let inside = ReentrancyGuard::try_enter_unless_busy();
            assert!(between.is_some() && inside.is_none());
            drop(between);
            ReentrancyGuard::is_entered()
        });
        assert!(is_entered.join().expect("it does not panic"));
        assert!(!ReentrancyGuard::is_entered(), "other threads are not");
    }
}
