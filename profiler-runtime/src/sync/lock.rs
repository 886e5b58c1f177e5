//! The lock of everything that threads share: one that a fork cannot leave held for ever.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::{ptr, thread};

use crate::process::fork;
use crate::sync::ReentrancyGuard;

/// Locks of this process that were held at a fork by a thread which does not exist here.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// Returns how many locks were replaced in this process and the ones it was forked from.
pub(crate) fn abandoned() -> usize {
    ABANDONED.load(Relaxed)
}

/// A [`Mutex`] that ignores poison, and that works in a forked child.
///
/// The first thread of a child that takes the lock looks whether it is free. If it is not, a thread of the parent held
/// it at the fork: it will never be released, and the value may be half changed. The child then leaves lock and value
/// alone for ever and goes on with a new lock around a value that `fresh` makes.
///
/// The parent is not involved, and pays one load for each time that the lock is taken.
pub(crate) struct Lock<T> {
    /// Twice the [`generation`](fork::generation) that the lock was last looked at in, plus one while a thread does so.
    adopted: AtomicU32,
    /// Not dropped once it is abandoned: the value may be half changed.
    original: ManuallyDrop<Mutex<T>>,
    /// The lock that counts instead of `original`, if it is not null.
    replacement: AtomicPtr<Mutex<T>>,
    fresh: fn() -> T,
}

impl<T> Lock<T> {
    /// Creates a lock whose value is the default one after a fork that left the lock held.
    pub(crate) const fn new(value: T) -> Self
    where
        T: Default,
    {
        Self::with(value, T::default)
    }

    /// Creates a lock whose value comes from `fresh` after a fork that left the lock held.
    pub(crate) const fn with(value: T, fresh: fn() -> T) -> Self {
        Self {
            adopted: AtomicU32::new(0),
            original: ManuallyDrop::new(Mutex::new(value)),
            replacement: AtomicPtr::new(ptr::null_mut()),
            fresh,
        }
    }

    /// Acquires the lock; waits for threads of this process only.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        // Before the lock is taken: see `watch`.
        fork::watch();
        let generation = fork::generation();
        if self.adopted.load(Acquire) != 2 * generation {
            self.adopt(generation);
        }
        self.current()
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> &Mutex<T> {
        let replacement = self.replacement.load(Acquire);
        if replacement.is_null() {
            &self.original
        } else {
            // SAFETY: it comes from `Box::into_raw` in `adopt`, and is freed by `drop` alone, which has `self` for
            // itself. The pair of release and acquire makes its initialisation visible.
            unsafe { &*replacement }
        }
    }

    /// Replaces the lock if a thread that does not exist in this process holds it.
    #[cold]
    fn adopt(&self, generation: u32) {
        // What is allocated here must not be measured: it could come back to this very lock.
        let _busy = ReentrancyGuard::try_enter();
        let (adopting, adopted) = (2 * generation + 1, 2 * generation);
        loop {
            let seen = self.adopted.load(Acquire);
            if seen == adopted {
                return;
            }
            if seen == adopting {
                // A thread of this process is between here and the end of this function.
                thread::yield_now();
            } else if self
                .adopted
                .compare_exchange(seen, adopting, Acquire, Relaxed)
                .is_ok()
            {
                break;
            }
        }
        // No thread of this process has taken the lock since the fork: they all come through here first. (The thread
        // that called `fork` may hold it. It keeps what it has; others get the new lock.)
        if matches!(self.current().try_lock(), Err(TryLockError::WouldBlock)) {
            let fresh = Box::new(Mutex::new((self.fresh)()));
            // A replacement of an earlier generation is abandoned with its value.
            self.replacement.store(Box::into_raw(fresh), Release);
            ABANDONED.fetch_add(1, Relaxed);
        }
        self.adopted.store(adopted, Release);
    }
}

impl<T> Drop for Lock<T> {
    fn drop(&mut self) {
        let replacement = *self.replacement.get_mut();
        if replacement.is_null() {
            // SAFETY: it is dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.original) };
        } else {
            // SAFETY: it comes from `Box::into_raw`, and nobody has it any more.
            drop(unsafe { Box::from_raw(replacement) });
        }
    }
}

impl<T: Default> Default for Lock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_gives_one_thread_at_a_time_its_value() {
        let lock = Lock::new(0_u64);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 4000);
    }

    #[test]
    fn a_panic_under_the_lock_does_not_poison_it() {
        let lock = Lock::new(1);
        let panicked = thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let mut value = lock.lock();
                *value = 2;
                panic!("under the lock");
            });
            holder.join().is_err()
        });
        assert!(panicked);
        assert_eq!(*lock.lock(), 2);
    }

    #[cfg(all(unix, not(miri)))]
    mod forks {
        use std::sync::mpsc::channel;

        use super::*;
        use crate::process::fork::tests::fork_and;

        /// Runs `then` while another thread holds the lock.
        fn while_held<T: Send>(lock: &Lock<T>, then: impl FnOnce()) {
            let (holds, held) = channel();
            let (release, released) = channel::<()>();
            thread::scope(|scope| {
                scope.spawn(move || {
                    let _value = lock.lock();
                    holds.send(()).expect("the test waits");
                    let _ = released.recv();
                });
                held.recv().expect("the thread holds it");
                then();
                drop(release);
            });
        }

        #[test]
        fn a_child_replaces_a_lock_that_another_thread_held() {
            let lock = Lock::with(1, || 7);
            while_held(&lock, || {
                fork_and(|| {
                    let first = *lock.lock() == 7;
                    *lock.lock() = 8;
                    first && *lock.lock() == 8 && abandoned() > 0
                });
            });
            assert_eq!(*lock.lock(), 1, "the parent has its own still");
        }

        #[test]
        fn a_child_keeps_a_lock_that_was_free() {
            let lock = Lock::with(1, || 7);
            *lock.lock() = 2;
            fork_and(|| *lock.lock() == 2);
        }

        #[test]
        fn a_grandchild_replaces_a_replacement() {
            let lock = Lock::with(1, || 7);
            while_held(&lock, || {
                fork_and(|| {
                    *lock.lock() = 8;
                    let mut right = true;
                    while_held(&lock, || {
                        fork_and(|| *lock.lock() == 7);
                        right = true;
                    });
                    right && *lock.lock() == 8
                });
            });
        }

        #[test]
        fn threads_of_a_child_agree_on_one_replacement() {
            let lock = Lock::new(0);
            while_held(&lock, || {
                fork_and(|| {
                    thread::scope(|scope| {
                        for _ in 0..8 {
                            scope.spawn(|| (0..100).for_each(|_| *lock.lock() += 1));
                        }
                    });
                    *lock.lock() == 800
                });
            });
        }

        #[test]
        fn the_thread_that_forks_under_the_lock_does_not_wait_for_itself() {
            let lock = Lock::with(1, || 7);
            let held = lock.lock();
            fork_and(|| *lock.lock() == 7);
            assert_eq!(*held, 1);
        }
    }
}
