//! The times of the calls that one cell counts: their histogram, their extremes and the sum of their squares.
//!
//! Each call counts the time of the one before it: see [`Newest`]. Nearly every time is in the *fast range*: between the
//! extremes so far, and in the window of buckets. One comparison finds that, and then a bucket and the sum of squares are
//! all that changes. Any other time takes the slow path, which ends by adapting the fast range.

use profiler_host::sync::ReentrancyGuard;
use profiler_report::internal::{BUCKETS, bucket_of};

use super::Totals;
use super::bucket::{Bucket, SPILL_AT};
use super::cell_buckets::CellBuckets;
use super::fast_range::{CountedTime, FastRange, Prepared};
use super::newest::{Newest, Pending};
use super::octaves::SUBBUCKETS;
use super::owner_cell::OwnerCell;
use super::single_writer::SingleWriterU64;

/// The times that one cell counts, in ticks. One writer, the owner of the cell; read with the lock of the name held.
///
/// The owner must not move it once it has recorded two times: the fast range may point into it.
#[repr(C)]
pub(super) struct CellTimes {
    newest: Newest,
    fast: FastRange,
    /// The sum of the squares of the other times, as the bits of an `f64`.
    other_squares: SingleWriterU64,
    /// The shortest time with its bits inverted, so that 0 means that there was none.
    inverted_min: SingleWriterU64,
    max: SingleWriterU64,
    /// Times outside the window, until it is placed again.
    outside: OwnerCell<u64>,
    /// How many of them place the window again; 0 means [`FIRST_OUTSIDE`].
    outside_limit: OwnerCell<u64>,
    buckets: CellBuckets,
}

/// The first number of times outside the window that places it again. It doubles each time, so that calls that no window
/// suits are not moved again and again.
const FIRST_OUTSIDE: u64 = 4;

/// After this many times outside the window since it was last placed, it may be widened. A name with few calls keeps the
/// window in its cell, which takes less memory.
const WIDEN_AT: u64 = 16;

impl CellTimes {
    pub(super) const fn new() -> Self {
        Self {
            newest: Newest::new(),
            fast: FastRange::new(),
            other_squares: SingleWriterU64::new(),
            inverted_min: SingleWriterU64::new(),
            max: SingleWriterU64::new(),
            outside: OwnerCell::new(0),
            outside_limit: OwnerCell::new(0),
            buckets: CellBuckets::new(),
        }
    }

    /// Makes zeroed memory a value as [`new`](Self::new) returns it.
    pub(super) fn initialize_zeroed(&self) {
        self.newest.clear();
    }

    /// Prepares the newest time for being counted.
    #[inline(always)]
    pub(super) fn prepare(&self) -> Prepared {
        Prepared::new(self.newest.get())
    }

    /// Records the time of a call on the fast path: counts the one before, which was prepared. Returns `false`, and does
    /// nothing, if [`record_slowly`](Self::record_slowly) must do it.
    ///
    /// Does not check for overflows: see [`is_nearly_full`](Self::is_nearly_full).
    #[inline(always)]
    #[must_use]
    pub(super) fn record_fast(&self, newest: Prepared, elapsed: i64) -> bool {
        self.count_fast(newest, elapsed).is_some()
    }

    /// Records the time of a call. Returns `true` if [`maintain`](Self::maintain) is to be called.
    pub(super) fn record(&self, elapsed: i64) -> bool {
        match self.count_fast(self.prepare(), elapsed) {
            Some(counted) => counted.is_nearly_full(),
            None => self.record_slowly(elapsed),
        }
    }

    #[inline(always)]
    fn count_fast(&self, newest: Prepared, elapsed: i64) -> Option<CountedTime> {
        if !self.fast.contains(newest) {
            return None;
        }
        self.newest.begin_counting();
        // SAFETY: the range contains the time, and is placed again with each new window. Windows are never freed.
        let counted = unsafe { self.fast.count(newest) };
        self.newest.set(elapsed);
        Some(counted)
    }

    /// Returns `true` if [`maintain`](Self::maintain) is to be called before the owner has made many more calls.
    pub(super) fn is_nearly_full(&self) -> bool {
        let mut is_full = self.fast.is_nearly_full();
        self.buckets
            .read(|_, count| is_full |= count >= u64::from(SPILL_AT));
        is_full
    }

    /// Records the time of a call for which [`record_fast`](Self::record_fast) returned `false`. Returns `true` if
    /// [`maintain`](Self::maintain) is to be called.
    #[cold]
    pub(super) fn record_slowly(&self, elapsed: i64) -> bool {
        let needs_maintenance = self.newest.is_some() && self.count_newest(elapsed);
        self.newest.set(elapsed);
        needs_maintenance
    }

    /// Counts the newest time; `next` is the one that follows. Returns `true` if [`maintain`](Self::maintain) is to be
    /// called.
    fn count_newest(&self, next: i64) -> bool {
        let index = bucket_index(self.newest.get());
        if self.buckets.octaves().len == 0 {
            // The first call is usually much longer than all others, because the caches are cold.
            let usual = bucket_index(next).min(index);
            self.buckets.place(usual / SUBBUCKETS + 1);
        }
        if let Some(bucket) = self.buckets.find(index) {
            return self.count_in(bucket, index);
        }
        self.add_bucket(index);
        // Read again: a measured allocator may have counted the time meanwhile, and left one of its own.
        if !self.newest.is_some() {
            return false;
        }
        let index = bucket_index(self.newest.get());
        // Without memory for the octave, or within the profiler, the time counts as the nearest one in the window.
        let found = self.buckets.find(index);
        found
            .or_else(|| self.buckets.nearest(index))
            .is_some_and(|bucket| self.count_in(bucket, index))
    }

    /// Counts the newest time in its bucket, or in the nearest one to that with the number `index`. Returns `true` if
    /// [`maintain`](Self::maintain) is to be called.
    fn count_in(&self, bucket: &Bucket, index: usize) -> bool {
        let time = self.newest.get();
        self.newest.begin_counting();
        let count = bucket.increment();
        let square = (time as f64) * (time as f64);
        let other_squares = f64::from_bits(self.other_squares.get()) + square;
        self.other_squares.set(other_squares.to_bits());
        self.update_extremes(clamped(time));
        self.newest.clear();
        self.set_fast_range();
        count >= SPILL_AT
            || !self.buckets.octaves().contains(index / SUBBUCKETS) && self.is_often_outside()
    }

    /// Adds a bucket: a rare one, or those of its octave. The latter takes a lock, so it is not done if the call comes from
    /// within the profiler, perhaps from a measured allocator that this very function calls.
    fn add_bucket(&self, index: usize) {
        if self.buckets.add_rare(index) {
            return;
        }
        if let Some(_reentrancy) = ReentrancyGuard::try_enter() {
            // Without memory the call counts all the same: see `count_newest`.
            let _ = self.buckets.add_octave(index / SUBBUCKETS);
        }
    }

    fn is_often_outside(&self) -> bool {
        self.outside.set(self.outside.get() + 1);
        self.outside.get() >= self.outside_limit.get().max(FIRST_OUTSIDE)
    }

    fn update_extremes(&self, time: u64) {
        if !time > self.inverted_min.get() {
            self.inverted_min.set(!time);
        }
        if time > self.max.get() {
            self.max.set(time);
        }
    }

    /// Makes the fast range the times that are in the window and no new extremes.
    fn set_fast_range(&self) {
        // Before the window is read: a signal handler that makes a measured call meanwhile may not use the old one.
        self.fast.clear();
        let (octaves, window) = self.buckets.window();
        let (min, max) = (!self.inverted_min.get(), self.max.get());
        self.fast.place(octaves, window, min, max);
    }

    /// Moves counts and sums that are about to overflow to `totals`, and the window to where the calls are. Called by the
    /// owner, with the lock of the totals held. `can_spill` says that the totals have memory for the counts.
    #[cold]
    pub(super) fn maintain(&self, totals: &mut Totals, can_spill: bool) {
        if can_spill {
            self.buckets
                .spill(|index, count| totals.buckets.add(index, count));
        }
        totals.add_squares(self.fast.take_squares().into());
        if !can_spill || self.outside.get() < self.outside_limit.get().max(FIRST_OUTSIDE) {
            return;
        }
        self.outside.set(0);
        self.outside_limit
            .set(2 * self.outside_limit.get().max(FIRST_OUTSIDE));
        let may_widen = self.outside_limit.get() > WIDEN_AT;
        self.fast.clear();
        self.buckets.place_again(may_widen);
        self.set_fast_range();
    }

    /// Adds everything to `totals`, whose lock the caller holds.
    pub(super) fn read_into(&self, totals: &mut Totals) {
        let mut seen = 0;
        let pending = self.newest.around(|newest| {
            let buckets = &mut totals.buckets;
            let newest = newest.map(bucket_index);
            let before = newest.map_or(0, |index| buckets.at(index));
            self.buckets.read_runs(|first, run| {
                buckets.add_run(first, run.iter().map(|bucket| bucket.get().into()));
            });
            seen = newest.map_or(0, |index| buckets.at(index)) - before;
        });
        totals.add_squares(self.fast.squares().into());
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, and squares are not negative"
        )]
        totals.add_squares(f64::from_bits(self.other_squares.get()) as u128);
        totals.add_extremes(!self.inverted_min.get(), self.max.get());
        match pending {
            Pending::Nothing => {}
            Pending::Uncounted(time) => {
                totals.buckets.add(bucket_index(time), 1);
                totals.add_squares(u128::from(time.unsigned_abs()).pow(2));
                totals.add_extremes(clamped(time), clamped(time));
            }
            Pending::Counted(time) => {
                let index = bucket_index(time);
                let mut counted: u64 = 0;
                self.buckets
                    .read(|other, count| counted += if other == index { count } else { 0 });
                totals.buckets.add(index, counted.saturating_sub(seen));
            }
        }
    }

    /// Removes everything. Called with the lock of the totals held, by the owner or when there is none.
    pub(super) fn reset(&self) {
        self.newest.clear();
        self.fast.clear();
        self.outside.set(0);
        self.outside_limit.set(0);
        for field in [&self.other_squares, &self.inverted_min, &self.max] {
            field.set(0);
        }
        self.fast.take_squares();
        self.buckets.reset();
    }
}

#[cfg(test)]
impl CellTimes {
    /// Sets the count of the bucket of a time, which was counted before.
    pub(super) fn set_count(&self, time: i64, count: u32) {
        if let Some(bucket) = self.buckets.find(bucket_index(time)) {
            bucket.set(count);
        }
    }
}

/// Returns the time as it counts in the histogram and the extremes. The noise of the clock can make that of a very short
/// call negative, which counts as zero.
fn clamped(time: i64) -> u64 {
    time.max(0).cast_unsigned()
}

/// Returns the bucket of a time. One that is longer than the buckets reach counts in the last one.
fn bucket_index(time: i64) -> usize {
    bucket_of(clamped(time)).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls of a test. Miri is a thousand times slower.
    const CALLS: i64 = if cfg!(miri) { 60 } else { 2_000 };

    /// Times that give their memory back when the test ends.
    struct TestTimes(CellTimes);

    impl std::ops::Deref for TestTimes {
        type Target = CellTimes;

        fn deref(&self) -> &CellTimes {
            &self.0
        }
    }

    impl Drop for TestTimes {
        fn drop(&mut self) {
            self.0.reset();
        }
    }

    fn new() -> (TestTimes, Totals) {
        (TestTimes(CellTimes::new()), Totals::new())
    }

    /// Records times as the fast path does.
    fn record(times: &CellTimes, totals: &mut Totals, elapsed: i64) {
        if times.record(elapsed) {
            times.maintain(totals, true);
        }
    }

    fn totals_of(times: &CellTimes, moved: &Totals) -> Totals {
        let mut totals = moved.clone();
        times.read_into(&mut totals);
        totals
    }

    /// All there is to know of these times, computed from all of them.
    fn expected(all: &[i64]) -> Totals {
        let mut totals = Totals::new();
        for time in all {
            totals.buckets.add(bucket_index(*time), 1);
            totals.add_squares(u128::from(time.unsigned_abs()).pow(2));
            totals.add_extremes(clamped(*time), clamped(*time));
        }
        totals
    }

    fn assert_equal(seen: &Totals, expected: &Totals) {
        assert_eq!(
            seen.buckets.ranges(BUCKETS),
            expected.buckets.ranges(BUCKETS)
        );
        assert_eq!((seen.min, seen.max), (expected.min, expected.max));
        assert!(
            (seen.deviation() - expected.deviation()).abs() <= 1e-6 * expected.deviation() + 1e-6
        );
    }

    #[test]
    fn usual_times_take_the_fast_path() {
        let (times, mut totals) = new();
        // The first call is long, and the usual ones are spread over three octaves.
        let usual = |call: i64| 100 + 37 * call % 400;
        let mut all = vec![50_000];
        all.extend((0..CALLS).map(usual));
        for time in &all {
            record(&times, &mut totals, *time);
        }
        assert_equal(&totals_of(&times, &totals), &expected(&all));
        let slow = (0..CALLS)
            .filter(|call| !times.record_fast(times.prepare(), usual(*call)))
            .count();
        assert_eq!(slow, 0);
    }

    #[test]
    fn times_around_zero_take_the_fast_path() {
        let (times, mut totals) = new();
        let all: Vec<i64> = (0..CALLS).map(|call| 7 * call % 11 - 4).collect();
        for time in &all {
            record(&times, &mut totals, *time);
        }
        assert_equal(&totals_of(&times, &totals), &expected(&all));
        assert!(
            all.iter()
                .all(|time| times.record_fast(times.prepare(), *time))
        );
    }

    /// Records short calls of two kinds, which are too far from each other for the window in the cell.
    fn record_two_kinds(times: &CellTimes, calls: i64) -> Vec<i64> {
        let mut totals = Totals::new();
        let all: Vec<i64> = (0..calls)
            .map(|call| if call % 2 == 0 { 20 } else { 9_000 })
            .collect();
        for time in &all {
            record(times, &mut totals, *time);
        }
        assert_equal(&totals_of(times, &totals), &expected(&all));
        all
    }

    fn are_all_fast(times: &CellTimes, all: &[i64]) -> bool {
        all.iter()
            .all(|time| times.record_fast(times.prepare(), *time))
    }

    #[test]
    fn two_kinds_of_many_short_calls_share_one_window() {
        let (times, _) = new();
        // As after many calls outside the window.
        times.outside_limit.set(WIDEN_AT);
        times.outside.set(WIDEN_AT - FIRST_OUTSIDE);
        let all = record_two_kinds(&times, CALLS);
        assert!(are_all_fast(&times, &all), "the window was widened");
    }

    #[test]
    fn few_calls_do_not_widen_the_window() {
        let (times, _) = new();
        let all = record_two_kinds(&times, 40);
        assert!(!are_all_fast(&times, &all));
    }

    #[test]
    fn a_few_rare_times_take_no_chunk() {
        let (times, mut totals) = new();
        let mut all: Vec<i64> = (0..CALLS).map(|call| 100 + 37 * call % 400).collect();
        // The first call, preempted ones, and one that is very short.
        all[0] = 50_000;
        for (place, time) in [(7, 1 << 20), (20, 3), (31, 9_000_000), (50, 1 << 20)] {
            all[place] = time;
        }
        for time in &all {
            record(&times, &mut totals, *time);
        }
        assert_equal(&totals_of(&times, &totals), &expected(&all));
        assert_eq!(times.buckets.chunks(), 0);
    }

    #[test]
    fn many_kinds_of_times_take_chunks() {
        let (times, mut totals) = new();
        let all: Vec<i64> = (0..60).map(|call| 1 << (call % 30)).collect();
        for time in &all {
            record(&times, &mut totals, *time);
        }
        assert_equal(&totals_of(&times, &totals), &expected(&all));
        assert!(times.buckets.chunks() > 5);
    }

    #[test]
    fn a_reset_removes_everything() {
        let (times, mut totals) = new();
        for time in [5, 70_000, 9_000, 3, 1 << 40] {
            record(&times, &mut totals, time);
        }
        times.reset();
        assert_equal(&totals_of(&times, &Totals::new()), &Totals::new());
        record(&times, &mut totals, 5);
        assert_equal(&totals_of(&times, &Totals::new()), &expected(&[5]));
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(if cfg!(miri) { 2 } else { 200 }))]

        #[test]
        fn no_sequence_of_times_loses_one(
            scales in proptest::collection::vec((0_u32..50, 1_usize..60), 1..8),
            seed in 0_i64..1_000,
        ) {
            let (times, mut totals) = new();
            let mut all = Vec::new();
            for (scale, calls) in scales {
                all.extend((0..calls).map(|call| {
                    let call = i64::try_from(call).expect("few calls");
                    ((1_i64 << scale) + (seed + 31 * call) % (1 << scale)) - 3
                }));
            }
            for time in &all {
                record(&times, &mut totals, *time);
            }
            assert_equal(&totals_of(&times, &totals), &expected(&all));
        }
    }
}
