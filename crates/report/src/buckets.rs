//! Histograms of durations: the bucket layout and the percentiles of the `histogram` crate, with buckets that a thread
//! counts a call in with one plain increment.

/// Sixteen buckets for each power of two.
const GROUPING_POWER: u8 = 4;
/// Durations of 2⁴⁸ ticks and more (a day at 3 GHz) count in the last bucket.
const MAX_VALUE_POWER: u8 = 48;
/// The number of buckets.
pub const BUCKETS: usize =
    (MAX_VALUE_POWER as usize - GROUPING_POWER as usize + 1) * (1 << GROUPING_POWER as usize);

/// The largest relative error of a percentile: half the width of a bucket over its lower bound.
pub const RELATIVE_ERROR: f64 = 0.5 / (1_u64 << GROUPING_POWER) as f64;

/// Returns the bucket of a number of ticks. From 2⁴⁸ ticks on the result is [`BUCKETS`] or more.
#[inline(always)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "at most GROUPING_POWER + 1 bits are left"
)]
pub const fn bucket_of(ticks: u64) -> usize {
    // Below 2^GROUPING_POWER each value has a bucket of its own.
    let power = (ticks | (1 << GROUPING_POWER)).ilog2() as usize;
    let shift = power - GROUPING_POWER as usize;
    (shift << GROUPING_POWER) + (ticks >> shift) as usize
}

/// [`bucket_of`] for a number of 32 bits, in fewer instructions.
///
/// It never shifts by a variable zero, as `ticks >> shift` would: on Zen 4, the reading of the clock after such a shift takes
/// 12 ns longer.
#[inline(always)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "at most GROUPING_POWER + 1 bits are left"
)]
pub const fn bucket_of_short(ticks: u32) -> usize {
    const GROUPS: usize = GROUPING_POWER as usize;
    let power = (ticks | (1 << GROUPS)).ilog2() as usize;
    let digits = ((ticks as u64) << GROUPS) >> power;
    (power << GROUPS) + digits as usize - (GROUPS << GROUPS)
}

/// Returns the smallest number of ticks that bucket `index` counts; for [`BUCKETS`], the end of the last bucket.
pub const fn first_of(index: usize) -> u64 {
    let power = index >> GROUPING_POWER;
    if power == 0 {
        return index as u64;
    }
    let place = index & ((1 << GROUPING_POWER) - 1);
    (((1 << GROUPING_POWER) + place) as u64) << (power - 1)
}

/// Calls whose durations lie within the same limits, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketRange {
    /// The smallest number of ticks that belongs to it.
    pub from: u64,
    /// `None` for calls as long as, or longer than, the buckets reach.
    pub to: Option<u64>,
    /// How many calls it counts.
    pub calls: u64,
}

/// Counts per bucket, summed over threads. Allocates when something is first counted.
#[derive(Clone, Debug, Default)]
pub struct Buckets(Vec<u64>);

impl Buckets {
    /// Creates counts of nothing, without memory for them.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Allocates the memory for all counts. Returns `false` if there is none.
    #[must_use]
    pub fn reserve(&mut self) -> bool {
        self.0.try_reserve_exact(BUCKETS - self.0.len()).is_ok()
    }

    /// Adds calls to a bucket.
    pub fn add(&mut self, bucket: usize, count: u64) {
        if count == 0 {
            return;
        }
        if self.0.is_empty() {
            self.0.resize(BUCKETS, 0);
        }
        if let Some(slot) = self.0.get_mut(bucket) {
            *slot += count;
        }
    }

    /// Adds calls to neighbouring buckets, from the one with the number `first` on. Has no branch for each bucket: which ones
    /// are empty cannot be predicted.
    pub fn add_run(&mut self, first: usize, counts: impl Iterator<Item = u64>) {
        if self.0.is_empty() {
            self.0.resize(BUCKETS, 0);
        }
        let slots = self.0.get_mut(first..).unwrap_or_default();
        for (slot, count) in slots.iter_mut().zip(counts) {
            *slot += count;
        }
    }

    /// Returns the calls in one bucket.
    pub fn at(&self, bucket: usize) -> u64 {
        self.0.get(bucket).copied().unwrap_or(0)
    }

    /// Returns the number of calls in all buckets.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the ticks below which each of `quantiles` (between 0 and 1) of the calls lie, within [`RELATIVE_ERROR`].
    /// Returns `None` if nothing was counted.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> Option<[f64; N]> {
        let calls = self.count();
        if calls == 0 {
            return None;
        }
        Some(quantiles.map(|quantile| {
            // The nearest rank, counted from one.
            let rank = (quantile * calls as f64).ceil().max(1.0);
            self.middle_at(rank)
        }))
    }

    /// Returns the middle of the bucket that counts the call of this rank, in ticks.
    fn middle_at(&self, rank: f64) -> f64 {
        let counts = self.0.iter().scan(0_u64, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        let below = counts.take_while(|sum| (*sum as f64) < rank).count();
        let index = below.min(BUCKETS - 1);
        f64::midpoint(first_of(index) as f64, (first_of(index + 1) - 1) as f64)
    }

    /// Returns the buckets that are not empty, at most `limit` (64 or more) of them: neighbours are merged, each with
    /// equally many others.
    pub fn ranges(&self, limit: usize) -> Vec<BucketRange> {
        let mut merged = 0;
        loop {
            let ranges = self.merged_ranges(merged);
            // A bucket for each power of two is fewer than 64.
            if ranges.len() <= limit || merged >= GROUPING_POWER {
                return ranges;
            }
            merged += 1;
        }
    }

    /// Returns the buckets that are not empty, after groups of 2^`merged` neighbours were merged. Groups do not reach
    /// over a power of two.
    fn merged_ranges(&self, merged: u8) -> Vec<BucketRange> {
        let mut ranges: Vec<BucketRange> = Vec::new();
        for (bucket, &calls) in self.0.iter().enumerate() {
            if calls == 0 {
                continue;
            }
            let group = bucket >> merged;
            let from = first_of(group << merged);
            let end = (group + 1) << merged;
            match ranges.last_mut() {
                Some(range) if range.from == from => range.calls += calls,
                _ => ranges.push(BucketRange {
                    from,
                    to: (end < BUCKETS).then(|| first_of(end)),
                    calls,
                }),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use histogram::{Config, Histogram};
    use proptest::prelude::*;

    use super::*;

    fn crate_bucket(ticks: u64) -> usize {
        let mut histogram = Histogram::new(GROUPING_POWER, MAX_VALUE_POWER).unwrap();
        histogram.increment(ticks).unwrap();
        histogram
            .as_slice()
            .iter()
            .position(|&count| count == 1)
            .unwrap()
    }

    #[test]
    fn the_buckets_are_those_of_the_crate() {
        assert_eq!(
            Config::new(GROUPING_POWER, MAX_VALUE_POWER)
                .unwrap()
                .total_buckets(),
            BUCKETS
        );
        let edges = (0..48).flat_map(|power| {
            let edge = 1_u64 << power;
            [edge.saturating_sub(1), edge, edge + 1, edge + edge / 3]
        });
        for ticks in edges.filter(|&ticks| ticks < 1 << 48) {
            assert_eq!(bucket_of(ticks), crate_bucket(ticks), "{ticks}");
            if let Ok(short) = u32::try_from(ticks) {
                assert_eq!(bucket_of_short(short), bucket_of(ticks), "{ticks}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        #[test]
        fn percentiles_are_those_of_the_crate(
            counts in prop::collection::vec((0..BUCKETS, 0_u64..1_000), 1..50),
            quantile in 0.0..=1.0_f64,
        ) {
            let mut buckets = Buckets::new();
            for (bucket, count) in counts {
                buckets.add(bucket, count);
            }
            // Without any counts, the crate expects all buckets, which are empty.
            let mut all = buckets.0.clone();
            all.resize(BUCKETS, 0);
            let expected = Histogram::from_buckets(GROUPING_POWER, MAX_VALUE_POWER, all).unwrap();
            let expected = [quantile, 0.0, 1.0].map(|quantile| {
                let bucket = expected.quantile_bucket(quantile).unwrap()?;
                Some(f64::midpoint(bucket.start() as f64, bucket.end() as f64))
            });
            let percentiles = buckets.quantiles([quantile, 0.0, 1.0]);
            prop_assert_eq!(percentiles.map(|ticks| ticks.map(Some)).unwrap_or_default(), expected);
        }
    }

    #[test]
    fn a_duration_that_is_too_long_is_beyond_the_last_bucket() {
        assert_eq!(bucket_of((1 << 48) - 1), BUCKETS - 1);
        assert_eq!(bucket_of(1 << 48), BUCKETS);
        assert!(bucket_of(u64::MAX) > BUCKETS);
    }

    #[test]
    fn percentiles_are_within_the_stated_error() {
        // Miri is a thousand times slower.
        let count: u32 = if cfg!(miri) { 2_000 } else { 100_000 };
        let mut buckets = Buckets::new();
        for ticks in 1..=u64::from(count) {
            buckets.add(bucket_of(ticks * 37), 1);
        }
        let quantiles = [0.5, 0.95, 0.99];
        let measured = buckets.quantiles(quantiles).unwrap();
        for (quantile, measured) in quantiles.into_iter().zip(measured) {
            let exact = quantile * f64::from(count) * 37.0;
            assert!(
                (measured / exact - 1.0).abs() <= RELATIVE_ERROR,
                "{quantile} {measured}"
            );
        }
    }

    #[test]
    fn an_empty_histogram_has_no_percentile() {
        assert!(Buckets::new().quantiles([0.5]).is_none());
        assert_eq!(Buckets::new().ranges(64), []);
    }

    #[test]
    fn a_bucket_begins_with_the_first_ticks_that_it_counts() {
        for index in 0..BUCKETS {
            let first = first_of(index);
            assert_eq!(bucket_of(first), index);
            assert!(index == 0 || bucket_of(first - 1) == index - 1, "{index}");
        }
        assert_eq!(first_of(BUCKETS), 1 << MAX_VALUE_POWER);
    }

    #[test]
    fn merged_buckets_hold_the_calls_between_their_limits() {
        // Miri is a thousand times slower.
        let calls: u64 = if cfg!(miri) { 50 } else { 4_000 };
        let times = (0..calls).map(|call| call * call * 7);
        let mut buckets = Buckets::new();
        for ticks in times.clone() {
            buckets.add(bucket_of(ticks), 1);
        }
        for merged in 0..=GROUPING_POWER {
            let ranges = buckets.merged_ranges(merged);
            for range in &ranges {
                let limits = range.from..range.to.expect("a short time");
                let within = times.clone().filter(|ticks| limits.contains(ticks));
                assert_eq!(within.count() as u64, range.calls, "{limits:?}");
            }
            let counted: u64 = ranges.iter().map(|range| range.calls).sum();
            assert_eq!(counted, calls, "no call is missing");
        }
    }

    #[test]
    fn no_more_buckets_are_returned_than_the_limit() {
        let mut buckets = Buckets::new();
        for index in 0..BUCKETS {
            buckets.add(index, 1);
        }
        let ranges = buckets.ranges(64);
        assert!((32..=64).contains(&ranges.len()), "{}", ranges.len());
        let calls: u64 = ranges.iter().map(|range| range.calls).sum();
        assert_eq!(calls, BUCKETS as u64);
        let last = ranges.last().expect("ranges");
        assert_eq!(last.to, None, "the last one has no upper limit");

        let mut few = Buckets::new();
        few.add(bucket_of(100), 3);
        let only = BucketRange {
            from: 100,
            to: Some(104),
            calls: 3,
        };
        assert_eq!(few.ranges(64), [only], "few buckets stay as they are");
    }
}
