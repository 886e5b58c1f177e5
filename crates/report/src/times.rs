//! The times of many calls on one device.

use super::histogram::Unsaved;
use super::text::{Field, nanoseconds};

/// The times of all calls of a row, on the CPU or on the GPU, in nanoseconds.
///
/// GPU times are end-to-end times on the stream, including gaps between kernels and other work between the two events.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Times {
    /// Calls with such a time, including recursive ones. With none, there are only sums, of GPU times that something else
    /// measured, and all times of single calls are 0 here and in no table or file. On the GPU, replays of captured graphs count too. A span of
    /// `tracing` has one time for each time that it was entered.
    pub calls: u64,
    /// The time of calls including their children, without calls made from a call of the same row: a recursive call
    /// counts once (`cpu_time_total`, `cuda_time_total`). On the GPU, that is one inside another call with a time on its stream. The time of a future is from its first poll to its end.
    pub total_ns: f64,
    /// The total as a percentage of all rows' self times, with two digits; at most 100. A future counts with the time
    /// of its polls.
    pub total_percent: f64,
    /// The time of all calls without their children (`self_cpu_time_total`, `self_cuda_time_total`): on the CPU those
    /// on the same thread, on the GPU those on the same stream. A future counts with the time of its polls.
    pub self_ns: f64,
    /// The self time as a percentage of all rows' self times, with two digits. The percentages of all rows add up to
    /// 100.00, however many threads there are.
    pub self_percent: f64,
    /// The mean of all calls (`cpu_time`, `cuda_time`).
    pub mean_ns: f64,
    /// The population standard deviation of all calls.
    pub std_ns: f64,
    /// The shortest call.
    pub min_ns: f64,
    /// The longest call.
    pub max_ns: f64,
    /// The median. Percentiles of a window are exact; those of a summary have the relative error given by
    /// [`Summary::percentile_error`](crate::Summary::percentile_error).
    pub p50_ns: f64,
    /// The 95th percentile.
    pub p95_ns: f64,
    /// The 99th percentile.
    pub p99_ns: f64,
    /// What tools that compare one summary with the next read instead of the sums, which may fall.
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub counters: Unsaved<Option<Counters>>,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}

/// Sums in nanoseconds that never fall while the process runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// The time of all calls without their children.
    pub self_ns: f64,
    /// The time of all calls, recursive ones included.
    pub sum_ns: f64,
}

impl Times {
    /// Returns the sums that never fall. Times that are not of the running process have those of this moment.
    pub(super) fn counters(&self) -> Counters {
        self.counters.0.unwrap_or_else(|| Counters {
            self_ns: self.self_ns.max(0.0),
            sum_ns: (self.mean_ns * self.calls as f64).max(0.0),
        })
    }

    /// Aggregates the times of single calls. The caller sets totals and percentages.
    pub(super) fn of_calls(mut times: Vec<f64>) -> Option<Self> {
        times.sort_unstable_by(f64::total_cmp);
        let (first, last) = (*times.first()?, *times.last()?);
        let calls = times.len() as f64;
        let mean = times.iter().sum::<f64>() / calls;
        let squares: f64 = times.iter().map(|time| (time - mean) * (time - mean)).sum();
        Some(Self {
            calls: times.len() as u64,
            mean_ns: mean,
            std_ns: (squares / calls).sqrt(),
            min_ns: first,
            max_ns: last,
            p50_ns: percentile(&times, 50),
            p95_ns: percentile(&times, 95),
            p99_ns: percentile(&times, 99),
            ..Self::default()
        })
    }

    /// Returns a time of single calls, such as the mean; `None` if there is no call, and it is not known.
    #[must_use]
    pub(crate) fn of_single(&self, ns: f64) -> Option<f64> {
        (self.calls > 0).then_some(ns)
    }

    /// Returns the times with their keys; those of single calls are missing if there is no call.
    pub(super) fn fields(&self) -> Vec<Field> {
        let percent = |key, percent: f64| Field::raw(key, format!("{percent:.2}"));
        let single = |key, ns: f64| Field::optional(key, self.of_single(ns).map(nanoseconds));
        vec![
            Field::raw("calls", self.calls),
            Field::nanoseconds("total_ns", self.total_ns),
            percent("total_percent", self.total_percent),
            Field::nanoseconds("self_ns", self.self_ns),
            percent("self_percent", self.self_percent),
            single("mean_ns", self.mean_ns),
            single("std_ns", self.std_ns),
            single("min_ns", self.min_ns),
            single("max_ns", self.max_ns),
            single("p50_ns", self.p50_ns),
            single("p95_ns", self.p95_ns),
            single("p99_ns", self.p99_ns),
        ]
    }
}

/// Returns the shortest time that at least this percentage of the calls do not exceed.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_occurred() {
        let times: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let times = Times::of_calls(times).expect("calls");
        assert_eq!(
            (times.p50_ns, times.p95_ns, times.p99_ns),
            (100.0, 190.0, 198.0)
        );
        assert_eq!((times.min_ns, times.max_ns), (1.0, 200.0));
    }

    #[test]
    fn mean_and_deviation_are_of_all_calls() {
        let times = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].to_vec();
        let times = Times::of_calls(times).expect("calls");
        assert_eq!((times.calls, times.mean_ns, times.std_ns), (8, 5.0, 2.0));
    }

    #[test]
    fn times_of_single_calls_are_missing_without_a_call() {
        let missing = |calls| {
            let times = Times {
                calls,
                ..Times::default()
            };
            let fields = times.fields().into_iter();
            let missing = fields.filter(|field| !field.has_value());
            missing
                .map(|field| field.key().to_owned())
                .collect::<Vec<_>>()
        };
        let single = [
            "mean_ns", "std_ns", "min_ns", "max_ns", "p50_ns", "p95_ns", "p99_ns",
        ];
        assert_eq!(missing(0), single);
        assert_eq!(missing(1), [""; 0]);
    }

    #[test]
    fn one_call_is_every_percentile_and_none_has_none() {
        let one = Times::of_calls(vec![7.0]).expect("a call");
        assert_eq!((one.p50_ns, one.p99_ns, one.std_ns), (7.0, 7.0, 0.0));
        assert_eq!(Times::of_calls(Vec::new()), None);
    }
}
