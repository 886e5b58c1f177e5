//! How the times of the calls of a row are distributed.

use std::fmt;

use super::text::json::array;
use crate::buckets::{BUCKETS, BucketRange, Buckets, bucket_of};

/// The most buckets of a row.
const MAX_BUCKETS: usize = 64;

/// The limits by which calls are counted for programs that compare several processes, whose buckets differ: 1 and 3 µs
/// times the powers of ten, in nanoseconds and as text in seconds.
pub(super) const CALL_LIMITS: [(f64, &str); 15] = [
    (1e3, "0.000001"),
    (3e3, "0.000003"),
    (1e4, "0.00001"),
    (3e4, "0.00003"),
    (1e5, "0.0001"),
    (3e5, "0.0003"),
    (1e6, "0.001"),
    (3e6, "0.003"),
    (1e7, "0.01"),
    (3e7, "0.03"),
    (1e8, "0.1"),
    (3e8, "0.3"),
    (1e9, "1"),
    (3e9, "3"),
    (1e10, "10"),
];

/// Calls that took longer than the limit before and no longer than this one, for each of [`CALL_LIMITS`], and those
/// beyond the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallsByLimit(pub(super) [u64; CALL_LIMITS.len() + 1]);

impl CallsByLimit {
    /// Adds the calls of a bucket where its middle lies.
    fn add_bucket(&mut self, bucket: &HistogramBucket) {
        let middle = f64::midpoint(bucket.from_ns, bucket.to_ns);
        let place = CALL_LIMITS.partition_point(|(limit, _)| *limit < middle);
        self.0[place] += bucket.calls;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (calls, more) in self.0.iter_mut().zip(other.0) {
            *calls += more;
        }
    }
}

/// How many calls of a row took how long: on the CPU, or on the GPU.
///
/// It has at most 64 buckets, from the shortest calls to the longest. None is empty, and all calls with such a time are
/// in one of them. Their widths grow with the times: each power of two is divided into sixteen buckets, or into eight,
/// four, two or one if the times are spread so far that there would be more than 64.
///
/// # Examples
///
/// ```
/// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
/// if let Some(histogram) = summary().row("load").and_then(|row| row.cpu_histogram.as_ref()) {
///     for bucket in &histogram.buckets {
///         println!("{} to {} ns: {} calls", bucket.from_ns, bucket.to_ns, bucket.calls);
///     }
/// }
/// ```
#[derive(Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Histogram {
    /// The buckets that are not empty, those of the shortest calls first.
    pub buckets: Vec<HistogramBucket>,
    /// The calls by limit, counted from buckets that are never merged: counts that never fall. `None` in a histogram that
    /// was read from a file.
    #[cfg_attr(feature = "serde", serde(skip))]
    by_limit: Unsaved<Option<CallsByLimit>>,
}

/// A value that is neither compared nor written to files: only reports of the running process have it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsaved<T>(pub T);

impl<T> PartialEq for Unsaved<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Unsaved<T> {}

/// The calls whose times lie within the limits of one bucket of a [`Histogram`].
///
/// In JSON it is an array of its three values.
#[derive(Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(from = "(f64, f64, u64)", into = "(f64, f64, u64)")
)]
#[non_exhaustive]
pub struct HistogramBucket {
    /// The shortest time that belongs to the bucket, in nanoseconds.
    pub from_ns: f64,
    /// The time that longer calls begin with, in nanoseconds.
    pub to_ns: f64,
    /// Calls whose times lie between these two.
    pub calls: u64,
}

impl Histogram {
    /// Reads the counts of buckets whose unit `to_ns` converts. `max` is the longest time in that unit.
    #[doc(hidden)]
    #[must_use]
    pub fn of(buckets: &Buckets, max: f64, to_ns: impl Fn(f64) -> f64) -> Self {
        let bucket = |range: &BucketRange| {
            let from = range.from as f64;
            // The last bucket of the statistics counts all longer calls too.
            let to = range.to.map_or(max.max(2.0 * from), |to| to as f64);
            HistogramBucket {
                from_ns: rounded(to_ns(from)),
                to_ns: rounded(to_ns(to)),
                calls: range.calls,
            }
        };
        let mut by_limit = CallsByLimit::default();
        for range in buckets.ranges(BUCKETS) {
            by_limit.add_bucket(&bucket(&range));
        }
        Self {
            buckets: buckets.ranges(MAX_BUCKETS).iter().map(bucket).collect(),
            by_limit: Unsaved(Some(by_limit)),
        }
    }

    /// Returns the calls by limit. A bucket is counted as a whole.
    pub(super) fn calls_by_limit(&self) -> CallsByLimit {
        self.by_limit.0.unwrap_or_else(|| {
            let mut by_limit = CallsByLimit::default();
            self.buckets
                .iter()
                .for_each(|bucket| by_limit.add_bucket(bucket));
            by_limit
        })
    }

    /// Counts the times of single calls of a window, in nanoseconds; `None` if there are none.
    pub(super) fn of_calls(times: &[f64]) -> Option<Self> {
        let longest = times.iter().copied().max_by(f64::total_cmp)?;
        let mut buckets = Buckets::new();
        for ns in times {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the cast saturates: a negative time belongs to the first bucket"
            )]
            let bucket = bucket_of(ns.round() as u64).min(BUCKETS - 1);
            buckets.add(bucket, 1);
        }
        Some(Self::of(&buckets, longest, |ns| ns))
    }

    /// Returns the buckets as serde writes them.
    pub(super) fn json(&self) -> String {
        let buckets = self.buckets.iter();
        array(buckets.map(|bucket| {
            let HistogramBucket {
                from_ns,
                to_ns,
                calls,
            } = bucket;
            format!("[{from_ns},{to_ns},{calls}]")
        }))
    }
}

/// Shortens a limit: the width of a bucket is at least 3 % of it.
fn rounded(ns: f64) -> f64 {
    if ns < 1_000.0 {
        (10.0 * ns).round() / 10.0
    } else {
        ns.round()
    }
}

impl From<(f64, f64, u64)> for HistogramBucket {
    fn from((from_ns, to_ns, calls): (f64, f64, u64)) -> Self {
        Self {
            from_ns,
            to_ns,
            calls,
        }
    }
}

impl From<HistogramBucket> for (f64, f64, u64) {
    fn from(bucket: HistogramBucket) -> Self {
        (bucket.from_ns, bucket.to_ns, bucket.calls)
    }
}

#[allow(
    clippy::missing_fields_in_debug,
    reason = "the counts by limit follow from the buckets"
)]
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut histogram = f.debug_struct("Histogram");
        histogram.field("buckets", &self.buckets).finish()
    }
}

impl fmt::Debug for HistogramBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{} ns × {}", self.from_ns, self.to_ns, self.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(times: &[f64]) -> Vec<(f64, f64, u64)> {
        let histogram = Histogram::of_calls(times).unwrap_or_default();
        histogram.buckets.into_iter().map(Into::into).collect()
    }

    #[test]
    fn each_call_is_in_the_bucket_of_its_time() {
        let times = [3.2, 100.0, 101.4, 1e6, 1e6, -0.5];
        assert_eq!(
            buckets(&times),
            [
                (0.0, 1.0, 1),
                (3.0, 4.0, 1),
                (100.0, 104.0, 2),
                (983_040.0, 1_015_808.0, 2)
            ]
        );
        assert_eq!(Histogram::of_calls(&[]), None);
    }

    #[test]
    fn calls_are_counted_by_limits_that_do_not_depend_on_the_spread() {
        let short = [900.0, 2_000.0, 2_900.0, 5e5];
        let narrow = Histogram::of_calls(&short).unwrap_or_default();
        let spread: Vec<f64> = (0..2_000).map(|call| 1.01_f64.powi(call)).collect();
        let all = Histogram::of_calls(&[&short[..], &spread].concat()).unwrap_or_default();
        let of_spread = Histogram::of_calls(&spread).unwrap_or_default();
        let mut sum = narrow.calls_by_limit();
        assert_eq!(sum.0[..8], [1, 2, 0, 0, 0, 0, 1, 0]);
        sum.add(&of_spread.calls_by_limit());
        assert_eq!(all.calls_by_limit(), sum);
        // The buckets themselves are wider.
        let read = Histogram {
            by_limit: Unsaved(None),
            ..all.clone()
        };
        assert_eq!(read.calls_by_limit().0.iter().sum::<u64>(), 2_004);
        assert_eq!(read, all);
    }

    #[test]
    fn the_last_bucket_reaches_to_the_longest_call() {
        let days = 5.0 * 86_400e9;
        let last = *buckets(&[1.0, days]).last().expect("a bucket");
        assert!(last.0 < days && last.1 >= days && last.2 == 1, "{last:?}");
    }

    #[test]
    fn ticks_become_nanoseconds() {
        let mut ticks = Buckets::new();
        ticks.add(bucket_of(3_000), 7);
        let histogram = Histogram::of(&ticks, 3_000.0, |ticks| ticks / 3.0);
        // 2,944 to 3,072 ticks.
        assert_eq!(histogram.json(), "[[981.3,1024,7]]");
    }

    #[test]
    fn times_that_are_spread_far_share_few_buckets() {
        let times: Vec<f64> = (0..10_000).map(|call| 1.002_f64.powi(call)).collect();
        let buckets = buckets(&times);
        assert!(buckets.len() <= MAX_BUCKETS, "{}", buckets.len());
        assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        let calls: u64 = buckets.iter().map(|(_, _, calls)| calls).sum();
        assert_eq!(calls, 10_000);
    }
}
