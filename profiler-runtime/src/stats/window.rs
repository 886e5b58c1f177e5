//! Windows of buckets on the heap, for cells whose inline window is too small, and the pool of those that no cell uses.
//!
//! Each has room for the most octaves, however many its cell needs at first: a cell that has one moves and widens it
//! without an allocator, so calls whose times change late, such as those of a machine that becomes busy, allocate nothing.
//!
//! A window is never freed, but used again by another cell. So a signal handler that moves the window of a cell, which it
//! may do if it makes measured calls, does not take the memory from under the call that it has interrupted.

use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;

use profiler_host::sync::Lock;

use super::bucket::Bucket;
use super::memory;
use super::octaves::{MAX_WINDOW, SUBBUCKETS};

/// The memory of a window on the heap.
pub(super) type Window = [Bucket; MAX_WINDOW * SUBBUCKETS];

/// The windows on the heap.
struct WindowPool {
    /// Those that no cell uses. Their buckets are zero.
    free: Vec<&'static Window>,
    /// How many there are. All of them have room in `free`, so that giving one back allocates nothing: a cell gives its
    /// window back when its thread ends.
    count: usize,
}

impl WindowPool {
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
static FREE: Lock<WindowPool> = Lock::with(WindowPool::new(), WindowPool::new);

/// Returns a window whose buckets are zero. Returns `None` if there is no memory, or cells may take no more.
pub(super) fn take() -> Option<&'static Window> {
    let mut pool = FREE.lock();
    if let Some(window) = pool.free.pop() {
        return Some(window);
    }
    // Room that is not used after a failure is harmless.
    let has_room = pool.add();
    drop(pool);
    has_room.then(allocate).flatten()
}

/// Gives a window back, which no cell uses any more. A child that was forked meanwhile has no room for it, and leaks it.
pub(super) fn give_back(window: &'static Window) {
    for bucket in window {
        bucket.set(0);
    }
    let mut pool = FREE.lock();
    if pool.free.len() < pool.free.capacity() {
        pool.free.push(window);
    }
}

fn allocate() -> Option<&'static Window> {
    let layout = Layout::new::<Window>();
    if !memory::has_room(layout.size()) {
        return None;
    }
    // SAFETY: the size is not zero.
    let window = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    memory::add(layout.size());
    // SAFETY: the memory has the layout of a window, is used by nothing else, and is never freed. Zeros are valid for
    // buckets.
    Some(unsafe { window.cast::<Window>().as_ref() })
}

/// Leaks the windows that no cell uses.
#[cfg(all(test, unix, not(miri)))]
pub(super) fn forget_unused() {
    FREE.lock().free.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_used_again_is_empty() {
        let window = take().expect("there is memory");
        window[7].increment();
        give_back(window);
        // Another test may take it from here on, but leaves it as empty.
        let again = take().expect("there is memory");
        assert!(again.iter().all(|bucket| bucket.get() == 0));
        give_back(again);
    }
}
