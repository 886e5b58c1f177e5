//! How much memory all cells take, and how much they may.
//!
//! Counted are the cells that were ever handed out, their windows on the heap and the chunks. Beyond the limit there are no
//! new cells and no new windows: see `local::borrowed`. A cell that exists may still get the chunks that its times need.

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
