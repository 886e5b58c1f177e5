//! The one kind of variable that cells are made of.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A sum with one writer: a plain load, an addition and a plain store.
///
/// Readers on other threads see some recent value; they see the last one when they know, by joining
/// the thread say, that it has been written.
pub(crate) struct Sum(AtomicU64);

impl Sum {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    #[inline]
    pub(crate) fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }

    /// A sum of ticks, whose single values may be a little below zero.
    #[inline]
    pub(super) fn add_ticks(&self, ticks: i64) {
        self.add(ticks.cast_unsigned());
    }

    pub(super) fn ticks(&self) -> i64 {
        self.get().cast_signed()
    }
}
