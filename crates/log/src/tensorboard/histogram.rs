//! Histograms in the buckets that `TensorFlow` uses.

use profiler_host::sync::RaceCell;
use profiler_report::internal::Message;

/// Returns the upper bounds of all buckets, ascending. They are `TensorFlow`'s: each positive one is a tenth above the
/// one before.
fn limits() -> &'static [f64] {
    static LIMITS: RaceCell<Vec<f64>> = RaceCell::new();
    LIMITS.get_or_init(make_limits)
}

fn make_limits() -> Vec<f64> {
    const SMALLEST: f64 = 1e-12;
    const LARGEST: f64 = 1e20;
    let powers = std::iter::successors(Some(SMALLEST), |limit| Some(limit * 1.1));
    let mut above: Vec<f64> = powers.take_while(|limit| *limit < LARGEST).collect();
    above.push(f64::MAX);
    let below = above.iter().rev().map(|limit| -limit);
    below.chain([0.0]).chain(above.iter().copied()).collect()
}

/// Values counted in buckets.
#[derive(Debug)]
pub(super) struct BucketedValues {
    smallest: f64,
    largest: f64,
    count: f64,
    sum: f64,
    sum_of_squares: f64,
    /// The upper bound of each bucket and how many values are in it, ascending. Empty buckets at both ends are left out,
    /// adjacent empty ones are merged.
    buckets: Vec<(f64, f64)>,
}

/// Why values cannot be a histogram.
#[derive(Debug, thiserror::Error)]
pub(super) enum HistogramError {
    #[error("it has no values; leave out a histogram of nothing")]
    Empty,
    #[error("one of its values is {0}; give it finite numbers alone")]
    NotFinite(f64),
}

impl BucketedValues {
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Result<Self, HistogramError> {
        let mut counts = vec![0.0; limits().len()];
        let mut this = Self {
            smallest: f64::INFINITY,
            largest: f64::NEG_INFINITY,
            count: 0.0,
            sum: 0.0,
            sum_of_squares: 0.0,
            buckets: Vec::new(),
        };
        for value in values {
            if !value.is_finite() {
                return Err(HistogramError::NotFinite(value));
            }
            this.smallest = this.smallest.min(value);
            this.largest = this.largest.max(value);
            this.count += 1.0;
            this.sum += value;
            this.sum_of_squares += value * value;
            let bucket = limits().partition_point(|limit| *limit <= value);
            counts[bucket.min(limits().len() - 1)] += 1.0;
        }
        if this.count == 0.0 {
            return Err(HistogramError::Empty);
        }
        this.buckets = buckets(&counts);
        Ok(this)
    }

    /// Appends the fields of the message `HistogramProto`.
    pub(super) fn append_to(&self, out: &mut Message) {
        const MIN: u32 = 1;
        const MAX: u32 = 2;
        const NUM: u32 = 3;
        const SUM: u32 = 4;
        const SUM_SQUARES: u32 = 5;
        const BUCKET_LIMIT: u32 = 6;
        const BUCKET: u32 = 7;
        out.double(MIN, self.smallest);
        out.double(MAX, self.largest);
        out.double(NUM, self.count);
        out.double(SUM, self.sum);
        out.double(SUM_SQUARES, self.sum_of_squares);
        out.packed_doubles(BUCKET_LIMIT, self.buckets.iter().map(|bucket| bucket.0));
        out.packed_doubles(BUCKET, self.buckets.iter().map(|bucket| bucket.1));
    }
}

/// Pairs the bounds with the counts, and leaves out or merges the empty buckets.
fn buckets(counts: &[f64]) -> Vec<(f64, f64)> {
    let mut buckets = Vec::new();
    let mut gap = None;
    for (limit, count) in limits().iter().zip(counts) {
        if *count == 0.0 {
            gap = Some(*limit);
            continue;
        }
        let before = gap.take().filter(|_| !buckets.is_empty());
        buckets.extend(before.map(|limit| (limit, 0.0)));
        buckets.push((*limit, *count));
    }
    buckets
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "counts and bounds are exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_histogram_equals_the_one_protobuf_writes() {
        let histogram = BucketedValues {
            smallest: 1.0,
            largest: 4.0,
            count: 3.0,
            sum: 6.0,
            sum_of_squares: 18.0,
            buckets: vec![(1.5, 2.0), (3.5, 0.0), (4.5, 1.0)],
        };
        let mut message = Message::default();
        histogram.append_to(&mut message);
        // `HistogramProto.SerializeToString()` of TensorBoard's Python package.
        let expected = [
            b"\x09\0\0\0\0\0\0\xf0\x3f\x11\0\0\0\0\0\0\x10\x40\x19\0\0\0\0\0\0\x08\x40".as_slice(),
            b"\x21\0\0\0\0\0\0\x18\x40\x29\0\0\0\0\0\0\x32\x40",
            b"\x32\x18\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\x0c\x40\0\0\0\0\0\0\x12\x40",
            b"\x3a\x18\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xf0\x3f",
        ];
        assert_eq!(message.bytes(), expected.concat());
    }

    #[test]
    fn no_values_and_infinite_ones_are_refused() {
        assert!(matches!(BucketedValues::of([]), Err(HistogramError::Empty)));
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let refused = BucketedValues::of([1.0, value]);
            assert!(
                matches!(refused, Err(HistogramError::NotFinite(_))),
                "{value}"
            );
        }
    }

    #[test]
    fn any_finite_number_has_a_bucket() {
        for value in [f64::MAX, f64::MIN, 0.0, -0.0, f64::MIN_POSITIVE, -1e-300] {
            let histogram = BucketedValues::of([value]).expect("a finite number");
            assert_eq!(histogram.buckets.len(), 1, "{value}");
        }
    }

    proptest! {
        #[test]
        fn each_value_lies_in_its_bucket(
            values in prop::collection::vec(
                prop_oneof![-1e25..1e25_f64, 1e-6..1e6_f64, Just(0.0)], 1..200,
            ),
        ) {
            let histogram = BucketedValues::of(values.iter().copied()).expect("finite numbers");
            let buckets = &histogram.buckets;
            prop_assert!(buckets.is_sorted_by(|one, other| one.0 < other.0));
            let mut lower = f64::NEG_INFINITY;
            for (limit, count) in buckets {
                let inside = values.iter().filter(|value| (lower..*limit).contains(*value));
                prop_assert_eq!(inside.count() as f64, *count);
                lower = *limit;
            }
            prop_assert!(buckets[0].1 > 0.0 && buckets[buckets.len() - 1].1 > 0.0);
            let empty = buckets.windows(2).filter(|two| two[0].1 + two[1].1 == 0.0);
            prop_assert_eq!(empty.count(), 0);
            let smallest = values.iter().copied().fold(f64::MAX, f64::min);
            let largest = values.iter().copied().fold(f64::MIN, f64::max);
            prop_assert_eq!((histogram.smallest, histogram.largest), (smallest, largest));
            prop_assert_eq!(histogram.count, values.len() as f64);
        }
    }
}
