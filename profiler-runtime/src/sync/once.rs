//! A value that is made once, without a thread ever waiting for another one to make it.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
};

/// A [`OnceLock`](std::sync::OnceLock) that never waits.
///
/// Threads that come first at once each make a value, and one of these is kept. So a fork in the middle of making one
/// cannot leave a child waiting; a value whose making has effects of its own belongs under a [`Lock`](super::Lock).
pub(crate) struct RaceCell<T> {
    value: AtomicPtr<T>,
    /// It owns the value, which threads share and any of them may drop.
    _owned: PhantomData<Option<Box<T>>>,
}

impl<T> RaceCell<T> {
    pub(crate) const fn new() -> Self {
        Self {
            value: AtomicPtr::new(ptr::null_mut()),
            _owned: PhantomData,
        }
    }

    /// Returns the value, if there is one.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        let value = self.value.load(Acquire);
        // SAFETY: it is null or comes from `Box::into_raw` in `get_or_init`, which has published it with a release. It
        // is freed by `drop` alone, which has `self` for itself.
        unsafe { value.as_ref() }
    }

    /// Returns the value; calls `make` where there is none. Of several made at once the first one stored is kept.
    #[inline]
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.store(make()),
        }
    }

    /// Stores a value unless there is one; returns the one that is kept.
    #[cold]
    fn store(&self, made: T) -> &T {
        let made = Box::into_raw(Box::new(made));
        let stored = self
            .value
            .compare_exchange(ptr::null_mut(), made, AcqRel, Acquire);
        match stored {
            // SAFETY: as in `get`.
            Ok(_) => unsafe { &*made },
            Err(known) => {
                // SAFETY: it comes from `Box::into_raw` above and was not published.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `get`; it is not null, since the exchange found another value than that.
                unsafe { &*known }
            }
        }
    }
}

impl<T> Drop for RaceCell<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: it comes from `Box::into_raw`, and nobody has it any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

// SAFETY: it is shared as `OnceLock` is: any thread may read the value (`T: Sync`), make it and drop it (`T: Send`).
unsafe impl<T: Send + Sync> Sync for RaceCell<T> {}
// SAFETY: it owns a boxed value.
unsafe impl<T: Send> Send for RaceCell<T> {}

impl<T: fmt::Debug> fmt::Debug for RaceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RaceCell").field(&self.get()).finish()
    }
}

#[cfg(test)]
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
