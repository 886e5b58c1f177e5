use std::fmt;

use crate::name::Name;

/// The GPU times of one name, in nanoseconds. They are end-to-end times on the stream, including gaps between kernels
/// and other work between the two events.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CudaTimes {
    /// Calls whose GPU time has been read, including replays of captured graphs.
    pub calls: u64,
    /// The time of calls that were not made from a call of the same name.
    pub total_ns: f64,
    /// The time of all calls without measured scopes inside them on the same stream.
    pub self_ns: f64,
    /// The mean of all calls.
    pub mean_ns: f64,
    /// The population standard deviation of all calls.
    pub std_ns: f64,
    /// The shortest call.
    pub min_ns: f64,
    /// The longest call.
    pub max_ns: f64,
    /// The median; see [`Summary::percentile_error`](crate::Summary::percentile_error).
    pub p50_ns: f64,
    /// The 95th percentile.
    pub p95_ns: f64,
    /// The 99th percentile.
    pub p99_ns: f64,
    /// The fraction of calls whose CPU time was at least as long as the GPU time: the device waited for launches.
    pub launch_bound: f64,
    /// The time of scopes directly inside it on other streams. It is in no other column of this name.
    pub other_streams_ns: f64,
    /// The first eight streams it was measured on, by their handles.
    pub streams: Vec<String>,
    /// `true` if it was measured on a default stream, because neither its calls nor their threads named one, and saw
    /// almost no work there.
    pub idle_stream: bool,
}

/// The limiting factor of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The CPU: for most calls, launching takes at least as long as the work on the GPU.
    LaunchBound,
    /// The GPU: most calls launch faster than the device works.
    DeviceBound,
}

impl Verdict {
    /// Returns the verdict for this fraction of launch-bound calls.
    pub(crate) const fn of_share(launch_bound: f64) -> Self {
        if launch_bound >= 0.5 {
            Self::LaunchBound
        } else {
            Self::DeviceBound
        }
    }

    /// Returns the verdict in a word, as the table shows it.
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
    /// Returns the verdict for the majority of the calls.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::of_share(self.launch_bound)
    }

    /// Creates the times of a name. Also returns how many of its calls lack a GPU time.
    pub(super) fn of(name: &Name) -> (Option<Self>, u64) {
        let Some(totals) = name.cuda.read() else {
            return (None, 0);
        };
        if totals.calls == 0 {
            return (None, totals.without);
        }
        let percentiles = totals.buckets.quantiles([0.5, 0.95, 0.99]);
        // The middle of a bucket may lie outside the observed range.
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
            other_streams_ns: totals.other_streams,
            streams: totals
                .stream_keys
                .iter()
                .map(crate::stream_key::StreamKey::to_string)
                .collect(),
            idle_stream: totals.idle_stream(),
        };
        (Some(times), totals.without)
    }
}
