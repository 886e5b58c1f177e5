//! The statistics of one name over all threads, in ticks.

use profiler_report::internal::Buckets;

use super::rises::Rises;

/// The sum of cells.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    /// Threads on which a scope of the name is open.
    pub(crate) open: u64,
    /// Scopes that were closed on other threads than their own. Cells and `open` count them as open.
    pub(crate) closed_elsewhere: u64,
    pub(crate) futures_begun: u64,
    pub(crate) recursive_calls: u64,
    /// The time of outermost calls. It counts a recursive frame once.
    pub(crate) total: i64,
    /// The time of recursive calls, which `total` contains.
    pub(crate) recursive_total: i64,
    pub(crate) own: i64,
    /// The rises of `own`.
    pub(crate) own_rises: Rises,
    /// The rises of the sum of all times.
    pub(crate) rises: Rises,
    /// The sum of the squares of all times. Saturates, after 2⁶⁰ calls of a minute.
    squares: u128,
    /// `u64::MAX` if nothing was counted.
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) panicked: u64,
    pub(crate) dropped_futures: u64,
    pub(crate) polled: i64,
    pub(crate) futures: u64,
    /// Spans that were entered several times, of which each enter is a call.
    pub(crate) reentered_spans: u64,
    pub(crate) out_of_order: u64,
    pub(crate) ring_full: u64,
    /// Calls whose GPU time found the ring full.
    pub(crate) without_cuda: u64,
    /// Calls without a stream while a CUDA context was current.
    pub(crate) without_stream: u64,
    /// Log entries that found the ring full on threads that have ended since, and that no later entry has reported.
    pub(crate) unreported_skips: u64,
    /// The thread time of outermost calls, in nanoseconds.
    pub(crate) thread_time: u64,
    pub(crate) own_thread_time: u64,
    pub(crate) buckets: Buckets,
}

impl Totals {
    pub(crate) const fn new() -> Self {
        Self {
            open: 0,
            closed_elsewhere: 0,
            futures_begun: 0,
            recursive_calls: 0,
            total: 0,
            recursive_total: 0,
            own: 0,
            own_rises: Rises::new(),
            rises: Rises::new(),
            squares: 0,
            min: u64::MAX,
            max: 0,
            panicked: 0,
            dropped_futures: 0,
            polled: 0,
            futures: 0,
            reentered_spans: 0,
            out_of_order: 0,
            ring_full: 0,
            without_cuda: 0,
            without_stream: 0,
            unreported_skips: 0,
            thread_time: 0,
            own_thread_time: 0,
            buckets: Buckets::new(),
        }
    }

    /// Returns the number of calls, with recursive ones.
    pub(crate) fn calls(&self) -> u64 {
        self.buckets.count()
    }

    /// Returns the number of calls that were not made from a call of the same name.
    ///
    /// Saturates: a reader may see that a recursive call was counted before it sees its bucket.
    pub(crate) fn primitive_calls(&self) -> u64 {
        self.calls().saturating_sub(self.recursive_calls)
    }

    /// Returns how many calls are open: threads with an open scope, and futures that have begun and not ended.
    pub(crate) fn open(&self) -> u64 {
        let scopes = self.open.saturating_sub(self.closed_elsewhere);
        scopes + self.futures_begun.saturating_sub(self.futures)
    }

    /// Returns the mean of all times.
    pub(crate) fn mean(&self) -> f64 {
        self.every_total() as f64 / self.calls().max(1) as f64
    }

    /// Returns the standard deviation of all times, as that of a whole population and not of a sample.
    pub(crate) fn deviation(&self) -> f64 {
        let times = u128::from(self.calls().max(1));
        let total = u128::from(self.every_total().unsigned_abs());
        // The square of `times` times the variance. In integers, because the difference of two nearly equal floats has
        // few valid digits; they overflow after years of measured time.
        let exact = times
            .checked_mul(self.squares)
            .zip(total.checked_mul(total));
        if let Some((squares, square)) = exact {
            return (squares.saturating_sub(square) as f64).sqrt() / times as f64;
        }
        let mean = self.mean();
        let mean_square = self.squares as f64 / times as f64;
        (mean_square - mean * mean).max(0.0).sqrt()
    }

    /// Adds to the sum of squares.
    pub(super) fn add_squares(&mut self, squares: u128) {
        self.squares = self.squares.saturating_add(squares);
    }

    /// Takes the extremes of further times into account.
    pub(super) fn add_extremes(&mut self, min: u64, max: u64) {
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }

    /// Takes the sums as a further reading of those whose rises are added up.
    pub(crate) fn note_rises(&mut self) {
        self.own_rises.note(self.own);
        self.rises.note(self.every_total());
    }

    fn every_total(&self) -> i64 {
        self.total.saturating_add(self.recursive_total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::StatCell;

    #[test]
    fn mean_and_deviation_are_over_all_calls() {
        let cell = StatCell::new();
        for (elapsed, outermost) in [
            (2, false),
            (4, true),
            (4, true),
            (4, false),
            (5, true),
            (5, true),
            (7, true),
            (9, true),
        ] {
            assert!(!cell.count(elapsed, elapsed, outermost));
        }
        let mut totals = Totals::new();
        cell.read_into(&mut totals);
        assert!((totals.mean() - 5.0).abs() < 1e-12);
        assert!((totals.deviation() - 2.0).abs() < 1e-12);
    }
}
