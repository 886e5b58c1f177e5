//! A mutex that a fork cannot leave locked forever.
//!
//! # Protocol
//!
//! A fork copies the state of a mutex, but not the thread that may hold it. So the first thread of a child that comes
//! to a lock checks ("adopts") it before it waits for it.
//!
//! | `adopted` | state | next |
//! |---|---|---|
//! | 2 × the current generation | adopted: `current` is the mutex to lock | |
//! | 2 × the current generation + 1 | one thread is adopting, the others yield | adopted: release store |
//! | anything else | last used before the fork | adopting: compare-exchange by one thread |
//!
//! The adopting thread tries the mutex. No thread of this process has locked it since the fork, since all of them come
//! through `adopt` first; so if it is locked, its holder does not exist here, and the value may be half changed. The
//! adopting thread then publishes a new mutex with a new value in `replacement`, and leaks the old one. The release
//! store of `adopted` pairs with the acquire load in `lock`: a thread that skips `adopt` sees the replacement.
//!
//! One holder does exist in the child: the thread that called `fork`, if it did so with the lock held. It keeps its
//! guard of the old mutex, and the others use the new one.
//!
//! In the parent nothing changes: it pays one load for each time that a lock is taken.
//!
//! A thread that holds a lock is inside the profiler (see [`ReentrancyGuard`]): it is marked before it waits for the mutex,
//! and until it has released it.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::{PoisonError, TryLockError};

use crate::process::fork;
use crate::sync::ReentrancyGuard;
use crate::sync::primitive::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::primitive::{AtomicPtr, AtomicU32, Mutex, MutexGuard, const_unless_loom, thread};

/// Locks that were replaced because a thread that does not exist in this process held them.
static ABANDONED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Returns how many locks were replaced in this process and in those that it was forked from.
pub fn abandoned() -> usize {
    ABANDONED.load(Relaxed)
}

/// A [`Mutex`] that ignores poison, that works in a forked child, and whose holder is inside the profiler: see the module.
pub struct Lock<T> {
    /// Twice the [`generation`](fork::generation) in which the lock was last adopted, plus one while a thread adopts it.
    adopted: AtomicU32,
    /// Not dropped if it was replaced, since its value may be half changed.
    original: ManuallyDrop<Mutex<T>>,
    /// The mutex to use instead of `original`, if not null.
    replacement: AtomicPtr<Mutex<T>>,
    /// Creates the value of a replacement.
    fresh: fn() -> T,
}

impl<T: Default> Lock<T> {
    const_unless_loom! {
        /// Creates a lock. A replacement in a forked child has the default value.
        pub fn new(value: T) -> Self {
            Self::with(value, T::default)
        }
    }
}

impl<T> Lock<T> {
    const_unless_loom! {
        /// Creates a lock. A replacement in a forked child has the value that `fresh` returns.
        pub fn with(value: T, fresh: fn() -> T) -> Self {
            Self {
                adopted: AtomicU32::new(0),
                original: ManuallyDrop::new(Mutex::new(value)),
                replacement: AtomicPtr::new(ptr::null_mut()),
                fresh,
            }
        }
    }

    /// Acquires the lock. Waits only for threads of this process.
    pub fn lock(&self) -> Locked<'_, T> {
        let inside = ReentrancyGuard::enter();
        // Before the mutex is locked: a lock that is held at a fork was taken after the fork handler was registered.
        fork::watch();
        let generation = fork::generation();
        if self.adopted.load(Acquire) != 2 * generation {
            self.adopt(generation);
        }
        let value = self.current().lock();
        Locked {
            value: value.unwrap_or_else(PoisonError::into_inner),
            inside,
        }
    }

    fn current(&self) -> &Mutex<T> {
        let replacement = self.replacement.load(Acquire);
        if replacement.is_null() {
            &self.original
        } else {
            // SAFETY: the pointer comes from `Box::into_raw` in `adopt`, whose release store pairs with the acquire
            // load, so the mutex is initialised. Only `drop` frees it, which has exclusive access.
            unsafe { &*replacement }
        }
    }

    /// Replaces the mutex if a thread that does not exist in this process holds it.
    #[cold]
    fn adopt(&self, generation: u32) {
        let (adopting, adopted) = (2 * generation + 1, 2 * generation);
        loop {
            let seen = self.adopted.load(Acquire);
            if seen == adopted {
                return;
            }
            if seen == adopting {
                // Another thread of this process is between here and the end of this function.
                thread::yield_now();
            } else if self
                .adopted
                .compare_exchange(seen, adopting, Acquire, Relaxed)
                .is_ok()
            {
                break;
            }
        }
        if matches!(self.current().try_lock(), Err(TryLockError::WouldBlock)) {
            let fresh = Box::new(Mutex::new((self.fresh)()));
            // A replacement of an earlier generation is leaked with its value.
            self.replacement.store(Box::into_raw(fresh), Release);
            ABANDONED.fetch_add(1, Relaxed);
        }
        self.adopted.store(adopted, Release);
    }
}

/// The value of a [`Lock`] that is held until this is dropped. Meanwhile, the thread is inside the profiler.
#[must_use = "the lock is released when this is dropped"]
#[derive(Debug)]
pub struct Locked<'l, T> {
    // Dropped first: the thread is inside until the mutex is free.
    value: MutexGuard<'l, T>,
    inside: ReentrancyGuard,
}

impl<'l, T> Locked<'l, T> {
    /// Calls `wait` with the guard of the mutex, which it releases meanwhile.
    pub(super) fn wait_with<R>(
        self,
        wait: impl FnOnce(MutexGuard<'l, T>) -> (MutexGuard<'l, T>, R),
    ) -> (Self, R) {
        let Self { value, inside } = self;
        let (value, result) = wait(value);
        (Self { value, inside }, result)
    }
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Lock<T> {
    fn drop(&mut self) {
        // Relaxed: `drop` has exclusive access.
        let replacement = self.replacement.load(Relaxed);
        if replacement.is_null() {
            // SAFETY: it is dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.original) };
        } else {
            // SAFETY: the pointer comes from `Box::into_raw`, and there is no reference to the mutex left.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn one_thread_at_a_time_holds_a_lock() {
        let lock = Lock::new(0_u64);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 4000);
    }

    #[test]
    fn a_thread_is_inside_the_profiler_while_it_holds_a_lock() {
        let (one, other) = (Lock::new(0), Lock::new(0));
        let first = one.lock();
        assert!(ReentrancyGuard::try_enter().is_none());
        let second = other.lock();
        drop(first);
        assert!(ReentrancyGuard::is_entered(), "it holds the other one");
        drop(second);
        assert!(!ReentrancyGuard::is_entered());
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
        use std::panic::{AssertUnwindSafe, catch_unwind};
        use std::sync::mpsc::channel;

        use super::*;
        use crate::process::fork_and;

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
            assert_eq!(*lock.lock(), 1, "the parent keeps its own");
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
                    // `fork_and` panics if the grandchild fails.
                    let grandchild = catch_unwind(AssertUnwindSafe(|| {
                        while_held(&lock, || fork_and(|| *lock.lock() == 7));
                    }));
                    grandchild.is_ok() && *lock.lock() == 8
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

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;

    use super::*;

    /// Two threads of a child come to a lock that a thread of the parent held.
    #[test]
    fn threads_that_adopt_a_lock_use_one_replacement() {
        loom::model(|| {
            fork::set_generation(0);
            let lock = Arc::new(Lock::with(100, || 0));
            std::mem::forget(lock.lock());
            fork::set_generation(1);
            let its_lock = Arc::clone(&lock);
            let thread = thread::spawn(move || *its_lock.lock() += 1);
            *lock.lock() += 1;
            thread.join().unwrap();
            assert_eq!(*lock.lock(), 2);
        });
    }

    #[test]
    fn threads_that_adopt_a_free_lock_keep_its_value() {
        loom::model(|| {
            fork::set_generation(0);
            let lock = Arc::new(Lock::with(100, || 0));
            fork::set_generation(1);
            let its_lock = Arc::clone(&lock);
            let thread = thread::spawn(move || *its_lock.lock() += 1);
            *lock.lock() += 1;
            thread.join().unwrap();
            assert_eq!(*lock.lock(), 102);
        });
    }
}
