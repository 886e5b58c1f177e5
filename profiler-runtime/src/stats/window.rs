//! Windows of buckets on the heap, for cells whose inline window is too small, and the pool of those that no cell uses.
//!
//! A window is never freed, but used again by another cell. So a signal handler that moves the window of a cell, which it
//! may do if it makes measured calls, does not take the memory from under the call that it has interrupted.

use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;

use super::bucket::Bucket;
use super::memory;
use super::octaves::{MAX_WINDOW, SUBBUCKETS};
use crate::sync::Lock;

/// The windows that no cell uses, by the number of their octaves. Their buckets are zero.
struct Pool([Vec<&'static [Bucket]>; MAX_WINDOW + 1]);

impl Pool {
    const fn new() -> Self {
        Self([const { Vec::new() }; MAX_WINDOW + 1])
    }
}

/// A child that was forked while another thread held the lock begins with an empty pool.
static FREE: Lock<Pool> = Lock::with(Pool::new(), Pool::new);

/// Returns a window of `octaves`, whose buckets are zero. Returns `None` if there is no memory, or cells may take no more.
pub(super) fn take(octaves: usize) -> Option<&'static [Bucket]> {
    let free = FREE.lock().0.get_mut(octaves)?.pop();
    free.or_else(|| allocate(octaves * SUBBUCKETS))
}

/// Gives a window back, which no cell uses any more. Without memory for the pool, the window is leaked.
pub(super) fn give_back(window: &'static [Bucket]) {
    for bucket in window {
        bucket.set(0);
    }
    let mut pool = FREE.lock();
    if let Some(windows) = pool.0.get_mut(window.len() / SUBBUCKETS)
        && windows.try_reserve(1).is_ok()
    {
        windows.push(window);
    }
}

fn allocate(len: usize) -> Option<&'static [Bucket]> {
    let layout = Layout::array::<Bucket>(len)
        .ok()
        .filter(|layout| layout.size() > 0 && memory::has_room(layout.size()))?;
    // SAFETY: the size is not zero.
    let window = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    memory::add(layout.size());
    // SAFETY: the memory has the layout of the buckets, is used by nothing else, and is never freed. Zeros are valid for
    // buckets.
    Some(unsafe { std::slice::from_raw_parts(window.cast::<Bucket>().as_ptr(), len) })
}

/// Leaks the windows that no cell uses.
#[cfg(all(test, unix, not(miri)))]
pub(super) fn forget_unused() {
    FREE.lock().0.iter_mut().for_each(Vec::clear);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_used_again_is_empty() {
        let window = take(MAX_WINDOW).expect("there is memory");
        assert_eq!(window.len(), MAX_WINDOW * SUBBUCKETS);
        window[7].increment();
        give_back(window);
        // Another test may take it from here on, but leaves it as empty.
        let again = take(MAX_WINDOW).expect("there is memory");
        assert!(again.iter().all(|bucket| bucket.get() == 0));
        give_back(again);
    }

    #[test]
    fn there_is_no_window_larger_than_the_largest() {
        assert!(take(MAX_WINDOW + 1).is_none());
    }
}
