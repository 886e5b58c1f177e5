//! What one thread counts for one name: one writer, any reader, no locked instruction.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::Totals;
use super::histogram::{BUCKETS, bucket_of};
use super::sum::Sum;

/// How a scope ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It returned, early or late.
    Returned,
    /// A panic went through it.
    Panicked,
    /// Its future was dropped before it was done.
    Dropped,
}

/// The statistics of one name on one thread.
///
/// Only the thread that holds the cell writes; see [`Sum`]. About 3 KiB, nearly all of it buckets of
/// which a name touches a few. All times are in ticks.
// What every call writes stands first, in one cache line.
#[repr(C, align(64))]
pub(crate) struct StatCell {
    /// The number of the outermost open scope of this name on this thread; zero where none is open.
    outermost: Sum,
    /// The time of outermost calls: what counts a recursive frame once. All calls are counted by the
    /// buckets together.
    total: Sum,
    own: Sum,
    /// The sum of squares as the bits of an `f64`.
    squares: Sum,
    /// The bits of the shortest call inverted, so that zero says there was none.
    inverted_min: Sum,
    max: Sum,
    recursive: Sum,
    recursive_total: Sum,
    panicked: Sum,
    dropped: Sum,
    /// Time spent polling, for futures.
    polled: Sum,
    /// Futures that were first polled on this thread, and those that ended on it.
    futures_begun: Sum,
    futures: Sum,
    /// Whether it is a poll that is open here.
    polling: Sum,
    /// Scopes that are open and were taken for forgotten when an older one closed.
    forgotten: Sum,
    /// Scopes that ended while younger ones were open, so that their self time is an upper bound.
    disordered: Sum,
    /// Log entries that found the ring full, of which the collector has not been told.
    pub(crate) skipped: Sum,
    /// All log entries that found the ring full.
    pub(crate) ring_full: Sum,
    /// Calls whose GPU time found the ring full.
    pub(crate) without_cuda: Sum,
    /// Calls that no stream was named for, where a CUDA context was current.
    pub(crate) without_stream: Sum,
    /// The number of the name.
    pub(crate) id: Sum,
    /// Calls still to go until one is logged again.
    pub(crate) until_logged: Sum,
    /// One call in so many goes to the default loggers, as the call site says that last opened here.
    pub(crate) every: Sum,
    buckets: [AtomicU32; BUCKETS],
}

/// Counts reach the summary through a lock once every so many calls, so that 32 bits are enough.
const CARRY: u32 = 1 << 31;

impl StatCell {
    pub(crate) const fn new() -> Self {
        Self {
            outermost: Sum::new(),
            total: Sum::new(),
            own: Sum::new(),
            squares: Sum::new(),
            inverted_min: Sum::new(),
            max: Sum::new(),
            recursive: Sum::new(),
            recursive_total: Sum::new(),
            panicked: Sum::new(),
            dropped: Sum::new(),
            polled: Sum::new(),
            futures_begun: Sum::new(),
            futures: Sum::new(),
            polling: Sum::new(),
            forgotten: Sum::new(),
            disordered: Sum::new(),
            skipped: Sum::new(),
            ring_full: Sum::new(),
            without_cuda: Sum::new(),
            without_stream: Sum::new(),
            id: Sum::new(),
            until_logged: Sum::new(),
            every: Sum::new(),
            buckets: [const { AtomicU32::new(0) }; BUCKETS],
        }
    }

    /// Notes that a scope with this number opens, inside of the one with the number `outer`.
    ///
    /// It is the outermost one of the name, unless that is still open around it.
    #[inline(always)]
    pub(crate) fn enter(&self, serial: u64) {
        if self.outermost.get() == 0 {
            self.outermost.set(serial);
        }
    }

    /// The number of the outermost open scope; zero where none is open.
    pub(crate) fn outermost(&self) -> u64 {
        self.outermost.get()
    }

    /// Takes the outermost scope for forgotten if its number is above this one.
    pub(crate) fn forget_above(&self, serial: u64) {
        if self.outermost.get() > serial {
            self.outermost.set(0);
            self.polling.set(0);
            self.forgotten.add(1);
        }
    }

    /// Notes that a scope with this number closes out of order; true where it is to be counted as an
    /// outermost one.
    pub(crate) fn leave_late(&self, serial: u64) -> bool {
        if self.leave(serial) {
            return true;
        }
        // Taken for forgotten meanwhile, it was not; a call from within another one of its name it is
        // only if that is open.
        self.forgotten.set(self.forgotten.get().saturating_sub(1));
        self.outermost.get() == 0
    }

    /// Notes that the scope with this number closes; true where it was the outermost one.
    #[inline(always)]
    pub(crate) fn leave(&self, serial: u64) -> bool {
        let outermost = self.outermost.get() == serial;
        if outermost {
            self.outermost.set(0);
        }
        outermost
    }

    /// Whether a scope is open here.
    pub(crate) fn is_open(&self) -> bool {
        self.outermost.get() != 0 || self.forgotten.get() != 0
    }

    /// The same as [`enter`](Self::enter) for a poll; true where it is the outermost.
    pub(crate) fn enter_poll(&self, serial: u64) -> bool {
        self.enter(serial);
        let outermost = self.outermost.get() == serial;
        if outermost {
            self.polling.set(1);
        }
        outermost
    }

    /// Notes that the poll with this number ends.
    pub(crate) fn leave_poll(&self, serial: u64) {
        if self.leave(serial) {
            self.polling.set(0);
        }
    }

    /// Notes that a future is polled for the first time.
    pub(crate) fn begin_future(&self) {
        self.futures_begun.add(1);
    }

    /// Counts a finished call; true where a bucket may have to be carried over (see
    /// [`carry`](Self::carry)): once in 2³¹ calls.
    #[inline(always)]
    #[must_use]
    pub(crate) fn count(&self, elapsed: i64, own: i64, outermost: bool) -> bool {
        if outermost {
            self.total.add_ticks(elapsed);
        } else {
            self.count_recursive(elapsed);
        }
        self.own.add_ticks(own);
        let exact = elapsed as f64;
        self.squares
            .set((f64::from_bits(self.squares.get()) + exact * exact).to_bits());
        // Below zero it is larger than what any bucket holds.
        let elapsed = elapsed.cast_unsigned();
        let Some(bucket) = self.buckets.get(bucket_of(elapsed)) else {
            return self.count_beyond(elapsed.cast_signed());
        };
        let count = bucket.load(Relaxed) + 1;
        bucket.store(count, Relaxed);
        self.widen(elapsed);
        count >= CARRY
    }

    /// Takes a call into minimum and maximum.
    #[inline(always)]
    fn widen(&self, elapsed: u64) {
        if !elapsed > self.inverted_min.get() {
            self.inverted_min.set(!elapsed);
        }
        if elapsed > self.max.get() {
            self.max.set(elapsed);
        }
    }

    /// A call of less than no length, which the clock's noise can make of a very short one, or one
    /// that is longer than the buckets reach.
    #[cold]
    fn count_beyond(&self, elapsed: i64) -> bool {
        let elapsed = elapsed.max(0).cast_unsigned();
        self.widen(elapsed);
        let Some(bucket) = self.buckets.get(bucket_of(elapsed)).or(self.buckets.last()) else {
            return false;
        };
        let count = bucket.load(Relaxed) + 1;
        bucket.store(count, Relaxed);
        count >= CARRY
    }

    #[cold]
    fn count_recursive(&self, elapsed: i64) {
        self.recursive.add(1);
        self.recursive_total.add_ticks(elapsed);
    }

    /// Counts an ending that was not a return.
    #[cold]
    pub(crate) fn count_ending(&self, ending: Ending) {
        match ending {
            Ending::Returned => {}
            Ending::Panicked => self.panicked.add(1),
            Ending::Dropped => self.dropped.add(1),
        }
    }

    /// Counts a future that is done, and the time it spent polling.
    pub(crate) fn count_future(&self, polled: i64) {
        self.futures.add(1);
        self.polled.add_ticks(polled);
    }

    /// Counts a scope that ended out of order.
    #[cold]
    pub(crate) fn count_disordered(&self) {
        self.disordered.add(1);
    }

    /// Empties the buckets that are about to overflow into `totals`, which the caller has locked
    /// against readers.
    #[cold]
    pub(crate) fn carry(&self, totals: &mut Totals) {
        for (index, bucket) in self.buckets.iter().enumerate() {
            let count = bucket.load(Relaxed);
            if count >= CARRY {
                totals.buckets.add(index, count.into());
                bucket.store(0, Relaxed);
            }
        }
    }

    /// Adds what stands here to `totals`.
    pub(crate) fn read_into(&self, totals: &mut Totals) {
        let open = u64::from(self.outermost.get() != 0).saturating_sub(self.polling.get());
        totals.open += open + self.forgotten.get();
        totals.recursive_calls += self.recursive.get();
        totals.total += self.total.ticks();
        totals.recursive_total += self.recursive_total.ticks();
        totals.own += self.own.ticks();
        totals.squares += f64::from_bits(self.squares.get());
        totals.min = totals.min.min(!self.inverted_min.get());
        totals.max = totals.max.max(self.max.get());
        totals.panicked += self.panicked.get();
        totals.dropped_futures += self.dropped.get();
        totals.polled += self.polled.ticks();
        totals.futures_begun += self.futures_begun.get();
        totals.futures += self.futures.get();
        totals.disordered += self.disordered.get();
        totals.ring_full += self.ring_full.get();
        totals.without_cuda += self.without_cuda.get();
        totals.without_stream += self.without_stream.get();
        for (index, bucket) in self.buckets.iter().enumerate() {
            totals.buckets.add(index, bucket.load(Relaxed).into());
        }
    }

    /// Moves what stands here to `totals` and leaves the cell as new, for the next thread.
    pub(crate) fn drain_into(&self, totals: &mut Totals) {
        self.read_into(totals);
        totals.unreported_skips += self.skipped.get();
        for sum in [
            &self.outermost,
            &self.total,
            &self.own,
            &self.squares,
            &self.inverted_min,
            &self.max,
            &self.recursive,
            &self.recursive_total,
            &self.panicked,
            &self.dropped,
            &self.polled,
            &self.futures_begun,
            &self.futures,
            &self.polling,
            &self.forgotten,
            &self.disordered,
            &self.skipped,
            &self.ring_full,
            &self.without_cuda,
            &self.without_stream,
            &self.until_logged,
            &self.every,
        ] {
            sum.set(0);
        }
        for bucket in &self.buckets {
            bucket.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(cell: &StatCell) -> Totals {
        let mut totals = Totals::new();
        cell.read_into(&mut totals);
        totals
    }

    #[test]
    fn a_recursive_call_counts_in_calls_but_not_in_the_cumulative_time() {
        let cell = StatCell::new();
        assert!(!cell.count(30, 10, false));
        assert!(!cell.count(100, 70, true));
        let totals = totals(&cell);
        assert_eq!((totals.calls(), totals.recursive_calls), (2, 1));
        assert_eq!((totals.total, totals.own), (100, 80));
        assert_eq!((totals.min, totals.max), (30, 100));
    }

    #[test]
    fn a_call_of_no_length_is_the_shortest() {
        let cell = StatCell::new();
        assert!(!cell.count(5, 5, true));
        assert!(!cell.count(0, 0, true));
        assert_eq!(totals(&cell).min, 0);
    }

    #[test]
    fn calls_beyond_the_buckets_are_counted_at_their_ends() {
        let cell = StatCell::new();
        for elapsed in [-3, 1 << 50, i64::MAX / 4] {
            assert!(!cell.count(elapsed, elapsed, true));
        }
        let totals = totals(&cell);
        assert_eq!(totals.calls(), 3);
        assert_eq!((totals.min, totals.max), (0, u64::MAX / 8));
        assert_eq!(totals.total, (1 << 50) + i64::MAX / 4 - 3);
    }

    #[test]
    fn a_bucket_is_carried_over_before_it_overflows() {
        let cell = StatCell::new();
        let bucket = bucket_of(9);
        cell.buckets[bucket].store(CARRY - 1, Relaxed);
        assert!(cell.count(9, 9, true));
        let mut folded = Totals::new();
        cell.carry(&mut folded);
        assert_eq!(cell.buckets[bucket].load(Relaxed), 0);
        assert!(!cell.count(9, 9, true));
        cell.read_into(&mut folded);
        assert_eq!(folded.buckets.quantiles([0.5]), Some([9.0]));
    }

    #[test]
    fn a_drained_cell_is_as_new() {
        let cell = StatCell::new();
        assert!(!cell.count(42, 40, true));
        cell.count_ending(Ending::Panicked);
        cell.count_future(3);
        let mut first = Totals::new();
        cell.drain_into(&mut first);
        assert_eq!((first.calls(), first.panicked, first.futures), (1, 1, 1));
        let second = totals(&cell);
        assert_eq!((second.calls(), second.min, second.max), (0, u64::MAX, 0));
        assert!(second.buckets.quantiles([0.5]).is_none());
    }
}
