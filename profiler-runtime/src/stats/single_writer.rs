//! Integers that one thread writes and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An integer with a single writer: changed by a plain load and a plain store, without a locked instruction.
///
/// Readers on other threads see a recent value. They see the latest one if something else orders the write before the
/// read, such as a lock or the join of the writing thread.
#[derive(Debug)]
pub(crate) struct SingleWriterU64(AtomicU64);

impl SingleWriterU64 {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Returns the value to its writer.
    ///
    /// Unlike [`get`](Self::get), this can be an operand of a comparison, because the load is not atomic.
    ///
    /// # Safety
    ///
    /// The caller is the thread that writes.
    #[inline(always)]
    pub(super) unsafe fn get_by_writer(&self) -> u64 {
        // SAFETY: no other thread writes, as the caller promises, so the load is in no data race: those of readers are
        // atomic, but they are loads too.
        unsafe { self.0.as_ptr().read() }
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    #[inline]
    pub(crate) fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }

    /// Adds to a sum of ticks. A single value may be slightly negative.
    #[inline]
    pub(super) fn add_ticks(&self, ticks: i64) {
        self.add(ticks.cast_unsigned());
    }

    /// Returns a sum of ticks.
    pub(super) fn ticks(&self) -> i64 {
        self.get().cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_ticks_lower_a_sum() {
        let sum = SingleWriterU64::new();
        sum.add_ticks(5);
        sum.add_ticks(-7);
        assert_eq!(sum.ticks(), -2);
    }
}
