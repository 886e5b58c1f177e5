//! An allocator that counts what each thread allocates, and the bytes that the process has.
#![allow(dead_code, reason = "no test uses all of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Counts what each thread allocates, and the bytes that the process has.
pub(crate) struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

pub(crate) static BYTES: AtomicI64 = AtomicI64::new(0);

fn note(bytes: usize) {
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    BYTES.fetch_add(bytes.cast_signed() as i64, Relaxed);
}

// SAFETY: all is done by the system's allocator, with the arguments as they came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise is the one asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size().cast_signed() as i64, Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) };
    }
}

pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}
