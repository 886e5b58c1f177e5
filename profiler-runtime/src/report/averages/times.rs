//! The times of many calls in a few numbers.

/// The times of all calls of a row, on the CPU or on the GPU, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AverageTimes {
    /// The calls that have such a time, recursive ones too.
    pub calls: u64,
    /// The time of calls that were not made from a call of the same row, with what they called: a recursive frame
    /// counts once (`cpu_time_total`, `cuda_time_total`). A future's is from its first poll to its end.
    pub total_ns: f64,
    /// The total as a share of all rows' self times, in per cent, with two digits; at most 100. A future counts
    /// with what its polls took.
    pub total_percent: f64,
    /// The time of all calls without what they called (`self_cpu_time_total`, `self_cuda_time_total`).
    pub self_ns: f64,
    /// The self time as a share of all rows' self times, in per cent, with two digits. Those of all rows add up to
    /// 100.00, as they are printed.
    pub self_percent: f64,
    /// The mean of all calls (`cpu_time`, `cuda_time`).
    pub mean_ns: f64,
    /// The standard deviation of the calls there were (not of a sample).
    pub std_ns: f64,
    /// The shortest call.
    pub min_ns: f64,
    /// The longest call.
    pub max_ns: f64,
    /// Half of the calls took no longer. Percentiles of a trace are exact; those of a summary have the error that
    /// it states.
    pub p50_ns: f64,
    /// 95 % of the calls took no longer.
    pub p95_ns: f64,
    /// 99 % of the calls took no longer.
    pub p99_ns: f64,
}

impl AverageTimes {
    /// What the times of single calls come to. Totals and shares are left to the caller.
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
}

/// The shortest time that so many per cent of the calls do not exceed.
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
        let times = AverageTimes::of_calls(times).expect("calls");
        assert_eq!(
            (times.p50_ns, times.p95_ns, times.p99_ns),
            (100.0, 190.0, 198.0)
        );
        assert_eq!((times.min_ns, times.max_ns), (1.0, 200.0));
    }

    #[test]
    fn mean_and_deviation_are_of_all_calls() {
        let times = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].to_vec();
        let times = AverageTimes::of_calls(times).expect("calls");
        assert_eq!((times.calls, times.mean_ns, times.std_ns), (8, 5.0, 2.0));
    }

    #[test]
    fn one_call_is_every_percentile_and_none_has_none() {
        let one = AverageTimes::of_calls(vec![7.0]).expect("a call");
        assert_eq!((one.p50_ns, one.p99_ns, one.std_ns), (7.0, 7.0, 0.0));
        assert_eq!(AverageTimes::of_calls(Vec::new()), None);
    }
}
