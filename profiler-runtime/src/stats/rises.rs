//! Sums that never fall, made from sums that may.

/// The rises of a sum from one reading to the next, added up, without its falls.
///
/// The noise of the clock makes single times negative, which lower the sum that a mean is taken of. A tool takes a counter
/// that falls for that of a new process, and would count all of it once more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rises {
    last: i64,
    sum: u64,
}

impl Rises {
    pub(super) const fn new() -> Self {
        Self { last: 0, sum: 0 }
    }

    /// Takes a reading of the sum. Readings are taken in the order in which they were made.
    pub(super) fn note(&mut self, now: i64) {
        let rise = now.saturating_sub(self.last).max(0);
        self.sum = self.sum.saturating_add(rise.unsigned_abs());
        self.last = now;
    }

    /// Returns what the sum has risen by.
    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }
}
