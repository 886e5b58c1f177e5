//! Histograms with bars of equal width on a logarithmic axis, few enough to be drawn and small enough to be stored.

use crate::histogram::{Histogram, HistogramBucket};
use crate::text::json::array;

/// The most bars of a histogram.
const MAX_BARS: i32 = 40;
/// Bars for each power of two, from the finest.
const PER_OCTAVE: [i32; 4] = [8, 4, 2, 1];

/// Returns the number of bars for each power of two, the number of the first bar and the calls of each bar, as JSON. Bar
/// `n` begins at `2^(n / bars for each power of two)` nanoseconds. Returns `None` if there are no calls.
pub(super) fn bars(histogram: &Histogram) -> Option<String> {
    let first = histogram.buckets.first()?;
    let last = histogram.buckets.last()?;
    let fits = |per_octave: &i32| {
        let place = |bucket: &HistogramBucket| place(middle(bucket), *per_octave);
        // A bucket wider than a bar would leave empty bars beside it.
        let is_narrow = |bucket: &HistogramBucket| f64::from(*per_octave) * octaves(bucket) <= 1.0;
        place(last) - place(first) < MAX_BARS && histogram.buckets.iter().all(is_narrow)
    };
    let per_octave = PER_OCTAVE.into_iter().find(fits).unwrap_or(1);
    let begin = place(middle(first), per_octave);
    let mut calls: Vec<u64> = Vec::new();
    for bucket in &histogram.buckets {
        let bar = place(middle(bucket), per_octave) - begin;
        let bar = usize::try_from(bar).unwrap_or_default();
        if calls.len() <= bar {
            calls.resize(bar + 1, 0);
        }
        calls[bar] += bucket.calls;
    }
    let head = [per_octave.to_string(), begin.to_string()];
    Some(array(
        head.into_iter()
            .chain(calls.iter().map(ToString::to_string)),
    ))
}

fn middle(bucket: &HistogramBucket) -> f64 {
    f64::midpoint(bucket.from_ns, bucket.to_ns).max(1.0)
}

/// Returns the width of a bucket in powers of two.
fn octaves(bucket: &HistogramBucket) -> f64 {
    (bucket.to_ns / bucket.from_ns.max(1.0)).log2()
}

/// Returns the number of the bar that a time belongs to.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a time has fewer than 2^20 nanoseconds' logarithms"
)]
fn place(ns: f64, per_octave: i32) -> i32 {
    (ns.log2() * f64::from(per_octave)).floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(buckets: &[(f64, f64, u64)]) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.buckets = buckets.iter().copied().map(HistogramBucket::from).collect();
        histogram
    }

    #[test]
    fn every_call_is_in_one_bar() {
        let narrow = histogram(&[(64.0, 68.0, 3), (65.0, 69.0, 4), (124.0, 128.0, 5)]);
        assert_eq!(bars(&narrow).as_deref(), Some("[8,48,7,0,0,0,0,0,0,5]"));
        let coarse = histogram(&[(64.0, 96.0, 1), (96.0, 128.0, 2), (128.0, 192.0, 3)]);
        assert_eq!(bars(&coarse).as_deref(), Some("[1,6,3,3]"));
        let wide = histogram(&[(1.0, 2.0, 1), (1e9, 1.1e9, 2)]);
        let json = bars(&wide).expect("bars");
        assert!(
            json.starts_with("[1,0,1,0,") && json.ends_with(",0,2]"),
            "{json}"
        );
    }

    #[test]
    fn bars_are_few() {
        let buckets: Vec<(f64, f64, u64)> = (0..1_000)
            .map(|bucket| 1.04_f64.powi(bucket))
            .map(|from| (from, from * 1.04, 1))
            .collect();
        let json = bars(&histogram(&buckets)).expect("bars");
        assert!(json.split(',').count() < 64, "{json}");
        assert_eq!(bars(&Histogram::default()), None);
    }
}
