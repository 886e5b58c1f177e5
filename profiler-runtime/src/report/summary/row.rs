use super::CudaTimes;
use crate::clock::clock;
use crate::name::{Name, TimeSource};

/// What is known of one name. All times are in nanoseconds.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Row {
    /// The name: a function's path with its type, or what the `name` argument says.
    pub name: String,
    /// The tag under which loggers get it.
    pub tag: String,
    /// Where the first call site of the name stands, as `file:line`.
    pub location: String,
    /// All finished calls, recursive ones too.
    pub calls: u64,
    /// Calls that were not made, directly or not, from a call of the same name.
    pub primitive_calls: u64,
    /// The time of primitive calls with all they called: a recursive frame counts once. For futures
    /// from the first poll to the end.
    pub total_ns: f64,
    /// The total without measured children. For futures the time spent polling, without them.
    pub self_ns: f64,
    /// The mean of all calls.
    pub mean_ns: f64,
    /// The standard deviation of all calls.
    pub std_ns: f64,
    /// The shortest call.
    pub min_ns: f64,
    /// The longest call.
    pub max_ns: f64,
    /// Half of the calls took no longer. Percentiles have the relative error that
    /// [`Summary::percentile_error`](crate::Summary::percentile_error) states.
    pub p50_ns: f64,
    /// 95 % of the calls took no longer.
    pub p95_ns: f64,
    /// 99 % of the calls took no longer.
    pub p99_ns: f64,
    /// The total as a share of the wall time since the profiler was first used. Over 1 where several
    /// threads work at once.
    pub wall_share: f64,
    /// How many of the calls were futures.
    pub futures: u64,
    /// The time futures spent polling; the rest of their total they waited.
    pub polled_ns: f64,
    /// Calls that ended with a panic.
    pub panicked: u64,
    /// Futures that were dropped before they were done.
    pub dropped_futures: u64,
    /// Calls that have begun and not ended yet, recursive ones aside; they are in no other column.
    pub open: u64,
    /// Log entries that found the ring full; the calls are in all other columns.
    pub dropped_entries: u64,
    /// Calls that ended before a younger scope inside them: the self time is an upper bound.
    pub disordered: u64,
    /// Whether the calls are too short to be timed one by one. The mean of many is right all the same,
    /// single values (minimum, maximum, percentiles, deviation) are not.
    pub too_short: bool,
    /// What is known of its GPU time; none where it never had one.
    pub cuda: Option<CudaTimes>,
    /// Calls that were to have a GPU time and have none; the summary says why.
    pub without_cuda: u64,
    /// Calls that have no GPU time because no stream is named for them, on threads where a CUDA context was current
    /// at the time or before. A function that launches nothing has them as well: it needs no stream.
    pub without_stream: u64,
    /// Which time its loggers get.
    pub source: TimeSource,
}

impl Row {
    /// The row of a name; none where no call has begun.
    pub(crate) fn of(name: &'static Name) -> Option<Self> {
        let totals = name.totals();
        let calls = totals.calls();
        if calls == 0 && totals.open() == 0 {
            return None;
        }
        let (cuda, without_cuda) = CudaTimes::of(name);
        let percentiles = totals.buckets.quantiles([0.5, 0.95, 0.99]);
        let [p50, p95, p99] = percentiles.unwrap_or_default();
        let ns = |ticks: f64| clock().nanoseconds(ticks).max(0.0);
        let (min, max) = if calls == 0 {
            (0, 0)
        } else {
            (totals.min, totals.max)
        };
        let (min, max) = (min as f64, max as f64);
        Some(Self {
            name: name.text.clone(),
            tag: name.tag.clone(),
            location: format!("{}:{}", name.location.file(), name.location.line()),
            calls,
            primitive_calls: totals.primitive_calls(),
            total_ns: ns(totals.total as f64),
            self_ns: ns(totals.own as f64),
            mean_ns: ns(totals.mean()),
            std_ns: ns(totals.deviation()),
            min_ns: ns(min),
            max_ns: ns(max),
            // The middle of a bucket may lie outside of what was seen; a snapshot may see the new
            // shortest call before it is the longest too.
            p50_ns: ns(p50.clamp(min, max.max(min))),
            p95_ns: ns(p95.clamp(min, max.max(min))),
            p99_ns: ns(p99.clamp(min, max.max(min))),
            wall_share: 0.0,
            futures: totals.futures,
            polled_ns: ns(totals.polled as f64),
            panicked: totals.panicked,
            dropped_futures: totals.dropped_futures,
            open: totals.open(),
            dropped_entries: totals.ring_full,
            disordered: totals.disordered,
            too_short: calls > 0 && p50 < clock().too_short() as f64,
            cuda,
            without_cuda: without_cuda + totals.without_cuda,
            without_stream: totals.without_stream,
            source: name.source(),
        })
    }
}
