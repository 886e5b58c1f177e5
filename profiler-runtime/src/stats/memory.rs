//! How much memory all cells take, and how much they may.
//!
//! Counted are the cells that were ever handed out, and the windows on the heap and the chunks, also those in stock. Beyond the
//! limit, no thread gets another cell of its own, and no window is allocated. Cells that threads borrow instead (see
//! `local::borrowed`) and the chunks that the times of a cell need are allocated all the same, and count.

use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::config::DEFAULT_CELL_MEMORY;

static LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_CELL_MEMORY);
static USED: AtomicUsize = AtomicUsize::new(0);

/// Sets how many bytes all cells may take.
pub(crate) fn set_cell_memory(bytes: usize) {
    LIMIT.store(bytes, Relaxed);
}

/// Counts memory that was allocated.
pub(super) fn add(bytes: usize) {
    USED.fetch_add(bytes, Relaxed);
}

/// Allocates zeroed memory that is never freed, and counts it. Returns `None` if there is none.
///
/// # Safety
///
/// Zeros are valid for `T`, which is not of size zero, and neither is `count`.
pub(super) unsafe fn zeroed<T>(count: usize) -> Option<&'static [T]> {
    let layout = Layout::array::<T>(count).ok()?;
    // SAFETY: the size is not zero, as the caller says.
    let memory = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    add(layout.size());
    // SAFETY: the memory has the layout of the slice, is used by nothing else, and is never freed. Zeros are valid.
    Some(unsafe { std::slice::from_raw_parts(memory.cast::<T>().as_ptr(), count) })
}

/// Returns `true` if there may be this many bytes more. Threads that ask at once may exceed the limit by what each of them
/// asks for.
pub(super) fn has_room(bytes: usize) -> bool {
    USED.load(Relaxed).saturating_add(bytes) <= LIMIT.load(Relaxed)
}

/// Returns how many bytes are counted.
#[cfg(all(test, unix, not(miri)))]
pub(super) fn used() -> usize {
    USED.load(Relaxed)
}
