//! A global allocator that counts, and that refuses memory on request.
//!
//! Each test program that needs it declares it itself:
//!
//! ```ignore
//! #[global_allocator]
//! static ALLOCATOR: TestAllocator = TestAllocator;
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

/// The system's allocator, which counts what each thread allocates and what the process holds, and refuses large blocks
/// where [`refusing`] asks for it.
#[derive(Debug)]
pub struct TestAllocator;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

static PROCESS_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// The bytes that the process holds.
pub static BYTES: AtomicI64 = AtomicI64::new(0);

static REFUSED_FROM: AtomicUsize = AtomicUsize::new(usize::MAX);
static REFUSED: AtomicUsize = AtomicUsize::new(0);

fn is_refused(size: usize) -> bool {
    let is_refused = size >= REFUSED_FROM.load(Relaxed);
    REFUSED.fetch_add(is_refused.into(), Relaxed);
    is_refused
}

fn count(bytes: i64) {
    // A thread that ends frees memory when its counter is gone.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    PROCESS_ALLOCATIONS.fetch_add(1, Relaxed);
    BYTES.fetch_add(bytes, Relaxed);
}

fn signed(bytes: usize) -> i64 {
    bytes.cast_signed() as i64
}

// SAFETY: the system's allocator does the work, with the arguments unchanged, or null reports that nothing was allocated.
// Counting allocates nothing.
unsafe impl GlobalAlloc for TestAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return null_mut();
        }
        count(signed(layout.size()));
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return null_mut();
        }
        count(signed(layout.size()));
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() && is_refused(size) {
            return null_mut();
        }
        count(signed(size) - signed(layout.size()));
        // SAFETY: the caller upholds the contract of `GlobalAlloc::realloc`.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.fetch_sub(signed(layout.size()), Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(block, layout) };
    }
}

/// Returns how many blocks this thread has allocated or resized.
#[must_use]
pub fn allocations() -> usize {
    ALLOCATIONS.with(Cell::get)
}

/// Returns how many blocks all threads together have allocated or resized.
#[must_use]
pub fn process_allocations() -> usize {
    PROCESS_ALLOCATIONS.load(Relaxed)
}

/// Returns how many blocks were refused so far.
#[must_use]
pub fn refusals() -> usize {
    REFUSED.load(Relaxed)
}

/// Runs `f` while blocks of at least `size` bytes are refused; returns how many were.
pub fn refusing(size: usize, f: impl FnOnce()) -> usize {
    let before = refusals();
    REFUSED_FROM.store(size, Relaxed);
    f();
    REFUSED_FROM.store(usize::MAX, Relaxed);
    refusals() - before
}
