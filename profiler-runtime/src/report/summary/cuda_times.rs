use std::fmt;

use crate::name::Name;

/// What is known of the GPU time of one name. All times are in nanoseconds, and end to end on the stream: with
/// the gaps between kernels, and whatever else the stream ran between the two events.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CudaTimes {
    /// Calls whose GPU time has been read; replays of captured graphs too.
    pub calls: u64,
    /// The time of calls that were not made from a call of the same name.
    pub total_ns: f64,
    /// The time of all calls without what measured scopes inside them took on the same stream.
    pub self_ns: f64,
    /// The mean of all calls.
    pub mean_ns: f64,
    /// The standard deviation of all calls.
    pub std_ns: f64,
    /// The shortest call.
    pub min_ns: f64,
    /// The longest call.
    pub max_ns: f64,
    /// Half of the calls took no longer; see [`Summary::percentile_error`](crate::Summary::percentile_error).
    pub p50_ns: f64,
    /// 95 % of the calls took no longer.
    pub p95_ns: f64,
    /// 99 % of the calls took no longer.
    pub p99_ns: f64,
    /// The share of calls whose CPU span was as long as the GPU's, or longer: the device waited for launches.
    pub launch_bound: f64,
    /// What scopes directly inside it took on other streams; in no other column of this name.
    pub elsewhere_ns: f64,
    /// The streams it was measured on, by their handles; the first eight.
    pub streams: Vec<String>,
    /// Whether it was measured on a default stream, since neither its calls nor their threads named one, and saw almost
    /// no work there.
    pub saw_no_work: bool,
}

/// What a function waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The CPU: most calls take as long to launch as their work takes on the GPU.
    LaunchBound,
    /// The GPU: most calls launch faster than the device works.
    DeviceBound,
}

impl Verdict {
    /// By the share of calls that are launch-bound: the majority.
    pub(crate) const fn of_share(launch_bound: f64) -> Self {
        if launch_bound >= 0.5 {
            Self::LaunchBound
        } else {
            Self::DeviceBound
        }
    }

    /// The verdict in a word, as the table shows it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LaunchBound => "launch-bound",
            Self::DeviceBound => "device-bound",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl CudaTimes {
    /// What the function waits for, by the majority of its calls.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::of_share(self.launch_bound)
    }

    /// What is known of a name, and how many of its calls were to have a GPU time and have none.
    pub(super) fn of(name: &Name) -> (Option<Self>, u64) {
        let Some(totals) = name.cuda.read() else {
            return (None, 0);
        };
        if totals.calls == 0 {
            return (None, totals.without);
        }
        let percentiles = totals.buckets.quantiles([0.5, 0.95, 0.99]);
        // The middle of a bucket may lie outside of what was seen.
        let [p50, p95, p99] = percentiles
            .unwrap_or_default()
            .map(|ns| ns.clamp(totals.min, totals.max));
        let calls = totals.calls as f64;
        let times = Self {
            calls: totals.calls,
            total_ns: totals.total,
            self_ns: totals.own,
            mean_ns: totals.mean(),
            std_ns: totals.deviation(),
            min_ns: totals.min,
            max_ns: totals.max,
            p50_ns: p50,
            p95_ns: p95,
            p99_ns: p99,
            launch_bound: totals.launch_bound as f64 / calls,
            elsewhere_ns: totals.elsewhere,
            streams: totals
                .stream_keys
                .iter()
                .map(crate::stream_key::StreamKey::to_string)
                .collect(),
            saw_no_work: totals.saw_no_work(),
        };
        (Some(times), totals.without)
    }
}
