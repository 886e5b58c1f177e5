//! Windows of buckets on the heap, for cells whose inline window is too small.
//!
//! Each has room for the most octaves, however many its cell needs at first: a cell that has one moves and widens it
//! without an allocator. The first one comes from a [stock](super::stock): when a cell takes it is not known, since the times of
//! a name may be in a few octaves for hours, and in one more when the machine becomes busy.
//!
//! A window is never freed, but used again by another cell. So a signal handler that moves the window of a cell, which it
//! may do if it makes measured calls, does not take the memory from under the call that it has interrupted.

use std::sync::atomic::AtomicPtr;

use profiler_host::sync::Lock;

use super::bucket::Bucket;
use super::octaves::{MAX_WINDOW, SUBBUCKETS};
use super::stock::{Stock, Stocked};

/// A window on the heap. Without a cell, its buckets are zero.
pub(super) struct Window {
    buckets: [Bucket; MAX_WINDOW * SUBBUCKETS],
    link: AtomicPtr<Window>,
}

static UNUSED: Lock<Stock<Window>> = Lock::with(Stock::new(), Stock::new);

// SAFETY: zeros are valid for all fields.
unsafe impl Stocked for Window {
    const BATCH: usize = 16;
    const IS_LIMITED: bool = true;

    fn stock() -> &'static Lock<Stock<Self>> {
        &UNUSED
    }

    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

impl Window {
    pub(super) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }
}

/// Gives a window back, which no cell uses any more.
pub(super) fn give_back(window: &'static Window) {
    for bucket in &window.buckets {
        bucket.set(0);
    }
    UNUSED.lock().give_back(window);
}

/// Leaks the windows that no cell uses.
#[cfg(all(test, unix, not(miri)))]
pub(super) fn forget_unused() {
    *UNUSED.lock() = Stock::new();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::stock::take;

    #[test]
    fn a_window_that_is_used_again_is_empty() {
        let window: &Window = take().expect("there is memory");
        window.buckets[7].increment();
        give_back(window);
        // Another test may take it from here on, but leaves it as empty.
        let again: &Window = take().expect("there is memory");
        assert!(again.buckets.iter().all(|bucket| bucket.get() == 0));
        give_back(again);
    }
}
