//! A pointer to a table that a thread replaces by larger ones.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

/// A pointer to the table that a thread uses.
///
/// A signal handler may run between any two instructions of the thread, and its first call of a name may replace the table
/// by a larger one. So the length is read before the pointer: a table is at least as long as the one before. (A [`Cell`] of
/// a slice would be read in any order.) What the handler itself finds in the middle of [`set`](Self::set) is an empty table.
#[repr(C)]
pub(super) struct TableCell<T> {
    start: Cell<NonNull<T>>,
    len: Cell<usize>,
}

impl<T> TableCell<T> {
    pub(super) const fn empty() -> Self {
        Self {
            start: Cell::new(NonNull::dangling()),
            len: Cell::new(0),
        }
    }

    /// Replaces the table by another one. If that is smaller, the caller is not using this one.
    pub(super) fn set(&self, table: NonNull<[T]>) {
        self.len.set(0);
        compiler_fence(SeqCst);
        self.start.set(table.cast());
        compiler_fence(SeqCst);
        self.len.set(table.len());
    }

    /// Returns a pointer to an entry, or `None` if the table is too short.
    // The length is compared before the fence: so it need not be loaded into a register.
    #[inline(always)]
    pub(super) fn entry(&self, index: usize) -> Option<NonNull<T>> {
        if index >= self.len.get() {
            return None;
        }
        compiler_fence(SeqCst);
        // SAFETY: the pointer is that of a table at least as long as the length, which is more than the index.
        Some(unsafe { self.start.get().add(index) })
    }

    /// Returns the table, or the beginning of one.
    #[inline(always)]
    pub(super) fn get(&self) -> NonNull<[T]> {
        let len = self.len.get();
        compiler_fence(SeqCst);
        NonNull::slice_from_raw_parts(self.start.get(), len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_one_that_was_set_last() {
        let table = [1, 2, 3];
        let cell = TableCell::empty();
        assert!(cell.get().is_empty());
        cell.set(NonNull::from(&table[..]));
        assert_eq!(cell.get(), NonNull::from(&table[..]));
        assert_eq!(cell.entry(2), Some(NonNull::from(&table[2])));
        assert_eq!(cell.entry(3), None);
        cell.set(NonNull::from(&table[..0]));
        assert!(cell.get().is_empty());
    }
}
