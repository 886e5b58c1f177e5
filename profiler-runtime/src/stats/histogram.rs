//! Histograms of durations: the bucket layout of the `histogram` crate, so that a thread counts a call with one plain
//! increment, and the crate computes the percentiles.

use histogram::Histogram;

/// Sixteen buckets for each power of two.
const GROUPING_POWER: u8 = 4;
/// Durations of 2⁴⁸ ticks and more (a day at 3 GHz) count in the last bucket.
const MAX_VALUE_POWER: u8 = 48;
/// The number of buckets.
pub(crate) const BUCKETS: usize =
    (MAX_VALUE_POWER as usize - GROUPING_POWER as usize + 1) * (1 << GROUPING_POWER as usize);

/// The largest relative error of a percentile: half the width of a bucket over its lower bound.
pub(crate) const RELATIVE_ERROR: f64 = 0.5 / (1_u64 << GROUPING_POWER) as f64;

/// Returns the bucket of a number of ticks. From 2⁴⁸ ticks on the result is [`BUCKETS`] or more.
#[inline(always)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "at most GROUPING_POWER + 1 bits are left"
)]
pub(crate) const fn bucket_of(ticks: u64) -> usize {
    // Below 2^GROUPING_POWER each value has a bucket of its own.
    let power = (ticks | (1 << GROUPING_POWER)).ilog2() as usize;
    let shift = power - GROUPING_POWER as usize;
    (shift << GROUPING_POWER) + (ticks >> shift) as usize
}

/// Counts per bucket, summed over threads. Allocates when something is first counted.
#[derive(Clone, Debug)]
pub(crate) struct Buckets(Vec<u64>);

impl Buckets {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Allocates the memory for all counts. Returns `false` if there is none.
    #[must_use]
    pub(crate) fn reserve(&mut self) -> bool {
        self.0.try_reserve_exact(BUCKETS - self.0.len()).is_ok()
    }

    /// Adds calls to a bucket.
    pub(crate) fn add(&mut self, bucket: usize, count: u64) {
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

    /// Returns the number of calls in all buckets.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the ticks below which each of `quantiles` (between 0 and 1) of the calls lie, within [`RELATIVE_ERROR`].
    /// Returns `None` if nothing was counted.
    pub(crate) fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> Option<[f64; N]> {
        // The crate takes ownership of the counts.
        let histogram =
            Histogram::from_buckets(GROUPING_POWER, MAX_VALUE_POWER, self.0.clone()).ok()?;
        let mut ticks = [0.0; N];
        for (slot, quantile) in ticks.iter_mut().zip(quantiles) {
            let bucket = histogram.quantile_bucket(quantile).ok()??;
            *slot = f64::midpoint(bucket.start() as f64, bucket.end() as f64);
        }
        Some(ticks)
    }
}

#[cfg(test)]
mod tests {
    use histogram::Config;

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
    }
}
