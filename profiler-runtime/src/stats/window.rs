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

/// The windows that no cell uses, by the number of their octaves.
struct Pool([Windows; MAX_WINDOW + 1]);

impl Pool {
    const fn new() -> Self {
        Self([const { Windows::new() }; MAX_WINDOW + 1])
    }
}

/// The windows with some number of octaves.
struct Windows {
    /// Those that no cell uses. Their buckets are zero.
    free: Vec<&'static [Bucket]>,
    /// How many there are. All of them have room in `free`, so that giving one back allocates nothing: a cell gives its
    /// window back when its calls have moved, long after the first ones.
    count: usize,
}

impl Windows {
    const fn new() -> Self {
        Self {
            free: Vec::new(),
            count: 0,
        }
    }

    /// Makes room in the pool for one more. Returns `false` if there is no memory.
    fn add(&mut self) -> bool {
        let missing = (self.count + 1).saturating_sub(self.free.len());
        let has_room = self.free.try_reserve(missing).is_ok();
        self.count += usize::from(has_room);
        has_room
    }
}

/// A child that was forked while another thread held the lock begins with an empty pool.
static FREE: Lock<Pool> = Lock::with(Pool::new(), Pool::new);

/// Returns a window of `octaves`, whose buckets are zero. Returns `None` if there is no memory, or cells may take no more.
pub(super) fn take(octaves: usize) -> Option<&'static [Bucket]> {
    let mut pool = FREE.lock();
    let windows = pool.0.get_mut(octaves)?;
    if let Some(window) = windows.free.pop() {
        return Some(window);
    }
    // Room that is not used after a failure is harmless.
    let has_room = windows.add();
    drop(pool);
    has_room.then(|| allocate(octaves * SUBBUCKETS)).flatten()
}

/// Gives a window back, which no cell uses any more. A child that was forked meanwhile has no room for it, and leaks it.
pub(super) fn give_back(window: &'static [Bucket]) {
    for bucket in window {
        bucket.set(0);
    }
    let mut pool = FREE.lock();
    if let Some(windows) = pool.0.get_mut(window.len() / SUBBUCKETS)
        && windows.free.len() < windows.free.capacity()
    {
        windows.free.push(window);
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
    let mut pool = FREE.lock();
    pool.0.iter_mut().for_each(|windows| windows.free.clear());
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
