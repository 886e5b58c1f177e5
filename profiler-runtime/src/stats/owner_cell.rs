//! Integers that only the owner of a cell uses.

use std::cell::Cell;

/// An integer that one thread at a time reads and writes: the owner of the statistics cell that it is part of.
///
/// Unlike an atomic, it can be an operand of an instruction that does more than load or store.
#[repr(transparent)]
pub(super) struct OwnerCell<T>(Cell<T>);

// SAFETY: the type is private to `stats`. A cell's fields are used only in methods that the cell's owner calls, or that are
// called when there is none; it changes its owner with the lock of its name held, which orders their accesses. The octave
// of a chunk is written before the chunk is published, and again only after it was removed with that lock held, under which
// all others read it.
unsafe impl<T: Send> Sync for OwnerCell<T> {}

impl<T: Copy> OwnerCell<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(Cell::new(value))
    }

    #[inline(always)]
    pub(super) fn get(&self) -> T {
        self.0.get()
    }

    #[inline(always)]
    pub(super) fn set(&self, value: T) {
        self.0.set(value);
    }
}
