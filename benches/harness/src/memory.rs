//! Memory: what the heap holds, and what of the process is resident.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The system's allocator, counted. To be made the global one by a bench that asks for [`heap`].
#[derive(Debug)]
pub struct CountingAllocator;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Those of this thread alone. It has no destructor, so that it can be counted to the thread's end.
    static OF_THIS_THREAD: Cell<u64> = const { Cell::new(0) };
}

fn count(layout: Layout) {
    OF_THIS_THREAD.set(OF_THIS_THREAD.get() + 1);
    ALLOCATIONS.fetch_add(1, Relaxed);
    ALLOCATED.fetch_add(layout.size() as u64, Relaxed);
}

// SAFETY: every method does what the system's allocator does, with the same arguments, and returns what
// it returns; counting touches no memory but its own counters, and does not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller keeps what `alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller keeps what `alloc_zeroed` asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        FREED.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: the block is one of ours, so one of the system's, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

/// What the heap has seen so far.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    /// How many blocks were asked for.
    pub allocations: u64,
    /// How many bytes are in use.
    pub bytes: i64,
}

/// What the heap has seen so far, on all threads; zero where [`CountingAllocator`] is not the global one.
pub fn heap() -> Heap {
    let held = ALLOCATED.load(Relaxed).wrapping_sub(FREED.load(Relaxed));
    Heap {
        allocations: ALLOCATIONS.load(Relaxed),
        bytes: held.cast_signed(),
    }
}

/// How many blocks the calling thread has asked for; zero where [`CountingAllocator`] is not the global one.
pub fn allocations_of_this_thread() -> u64 {
    OF_THIS_THREAD.get()
}

impl Heap {
    /// What came since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            allocations: self.allocations - earlier.allocations,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

/// Bytes of this process that are resident; `None` where the system does not say so in `/proc`.
pub fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
