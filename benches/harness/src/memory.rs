//! The heap usage and the resident memory of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counting wrapper of the system's allocator. A bench that uses [`heap`] makes it the global
/// allocator.
#[derive(Debug)]
pub struct CountingAllocator;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The allocations of this thread. It has no destructor, so that it counts until the thread has
    /// ended.
    static OF_THIS_THREAD: Cell<u64> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    OF_THIS_THREAD.set(OF_THIS_THREAD.get() + 1);
    ALLOCATIONS.fetch_add(1, Relaxed);
    ALLOCATED.fetch_add(bytes as u64, Relaxed);
}

// SAFETY: every method calls the same method of the system's allocator with the same arguments and
// returns its result. Counting touches only the counters, and does not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        FREED.fetch_add(layout.size() as u64, Relaxed);
        count(size);
        // SAFETY: the caller keeps the contract of `realloc`, and the block is one of the system's allocator.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        FREED.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: the block was allocated by this allocator, and so by the system's, with this
        // layout.
        unsafe { System.dealloc(block, layout) }
    }
}

/// The number of allocations so far, and the bytes in use.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    /// The number of allocations so far.
    pub allocations: u64,
    /// The bytes in use.
    pub bytes: i64,
}

/// Returns the state of the heap over all threads, or zeros if [`CountingAllocator`] is not the
/// global allocator.
pub fn heap() -> Heap {
    let held = ALLOCATED.load(Relaxed).wrapping_sub(FREED.load(Relaxed));
    Heap {
        allocations: ALLOCATIONS.load(Relaxed),
        bytes: held.cast_signed(),
    }
}

/// Returns the number of allocations of the calling thread, or zero if [`CountingAllocator`] is not
/// the global allocator.
pub fn allocations_of_this_thread() -> u64 {
    OF_THIS_THREAD.get()
}

/// Returns the resident bytes of this process, or `None` if `/proc` does not show them.
pub fn resident() -> Option<u64> {
    in_status("VmRSS:")
}

/// Returns the most bytes that were resident at any time, or `None` if `/proc` does not show them.
pub fn peak_resident() -> Option<u64> {
    in_status("VmHWM:")
}

fn in_status(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns these bytes in MiB.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
