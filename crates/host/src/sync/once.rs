//! A value that is initialised once, without a thread ever waiting for another one.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use crate::sync::primitive::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::primitive::{AtomicPtr, const_unless_loom};

/// A [`OnceLock`](std::sync::OnceLock) that never waits.
///
/// Threads that initialise it at once each create a value, and the first to store its own wins; the others drop theirs.
/// So a fork during an initialisation cannot leave a child waiting for a thread that it does not have. A value whose
/// creation has side effects belongs under a [`Lock`](super::Lock).
///
/// The pointer is null until a value is published with a release exchange; it never changes after that. An acquire load
/// that sees it also sees the value.
pub struct RaceCell<T> {
    value: AtomicPtr<T>,
    /// The cell owns the value.
    _owned: PhantomData<Option<Box<T>>>,
}

impl<T> RaceCell<T> {
    const_unless_loom! {
        /// Creates a cell without a value.
        pub fn new() -> Self {
            Self {
                value: AtomicPtr::new(ptr::null_mut()),
                _owned: PhantomData,
            }
        }
    }

    /// Returns the value, if there is one.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        let value = self.value.load(Acquire);
        // SAFETY: the pointer is null or comes from `Box::into_raw` in `store`, which publishes it with a release. Only
        // `drop` frees it, which has exclusive access.
        unsafe { value.as_ref() }
    }

    /// Returns the value. If there is none, stores the one that `make` creates, unless another thread does so first.
    #[inline]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.store(Box::new(make())),
        }
    }

    /// Returns the value as [`get_or_init`](Self::get_or_init) does, or `None` if `make` has no memory for it.
    #[cfg(not(loom))]
    pub fn get_or_try_init(&self, make: impl FnOnce() -> Option<Box<T>>) -> Option<&T> {
        match self.get() {
            Some(value) => Some(value),
            None => make().map(|made| self.store(made)),
        }
    }

    /// Stores a value unless there is one. Returns the one that is kept.
    #[cold]
    fn store(&self, made: Box<T>) -> &T {
        let made = Box::into_raw(made);
        let stored = self
            .value
            .compare_exchange(ptr::null_mut(), made, AcqRel, Acquire);
        match stored {
            // SAFETY: as in `get`.
            Ok(_) => unsafe { &*made },
            Err(known) => {
                // SAFETY: the pointer comes from `Box::into_raw` above and was not published.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `get`. It is not null, since the exchange failed.
                unsafe { &*known }
            }
        }
    }
}

impl<T> Drop for RaceCell<T> {
    fn drop(&mut self) {
        // Relaxed: `drop` has exclusive access.
        let value = self.value.load(Relaxed);
        if !value.is_null() {
            // SAFETY: the pointer comes from `Box::into_raw`, and there is no reference to the value left.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

// SAFETY: as for `OnceLock`: any thread may read the value (`T: Sync`), and create or drop it (`T: Send`).
unsafe impl<T: Send + Sync> Sync for RaceCell<T> {}
// SAFETY: the cell owns a boxed value.
unsafe impl<T: Send> Send for RaceCell<T> {}

impl<T: fmt::Debug> fmt::Debug for RaceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RaceCell").field(&self.get()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn the_first_value_is_kept() {
        let cell = RaceCell::new();
        assert_eq!(cell.get(), None);
        assert_eq!(cell.get_or_init(|| 1), &1);
        assert_eq!(cell.get_or_init(|| 2), &1);
        assert_eq!(cell.get(), Some(&1));
    }

    #[test]
    fn threads_that_race_get_one_value() {
        for _ in 0..20 {
            let (cell, start) = (RaceCell::new(), Barrier::new(4));
            let values: Vec<usize> = thread::scope(|scope| {
                let racers = [1, 2, 3, 4].map(|value| {
                    let (cell, start) = (&cell, &start);
                    scope.spawn(move || {
                        start.wait();
                        ptr::from_ref(cell.get_or_init(|| value)).addr()
                    })
                });
                racers
                    .into_iter()
                    .map(|racer| racer.join().expect("it does not panic"))
                    .collect()
            });
            assert!(values.iter().all(|value| *value == values[0]));
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// A value whose accesses loom notes: it finds one that is seen before it is complete.
    struct Value(loom::cell::UnsafeCell<u32>);

    // SAFETY: written before it is shared, and read only after that.
    unsafe impl Sync for Value {}

    impl Value {
        fn new(number: u32) -> Self {
            let value = Self(loom::cell::UnsafeCell::new(0));
            // SAFETY: no other thread has it yet.
            value.0.with_mut(|inner| unsafe { *inner = number });
            value
        }

        fn get(&self) -> u32 {
            // SAFETY: it is not written any more.
            self.0.with(|inner| unsafe { *inner })
        }
    }

    #[test]
    fn threads_that_race_get_one_complete_value() {
        loom::model(|| {
            let cell = Arc::new(RaceCell::new());
            let its_cell = Arc::clone(&cell);
            let thread = thread::spawn(move || its_cell.get_or_init(|| Value::new(1)).get());
            let here = cell.get_or_init(|| Value::new(2)).get();
            assert_eq!(here, thread.join().unwrap());
            assert_eq!(cell.get().map(Value::get), Some(here));
        });
    }
}
