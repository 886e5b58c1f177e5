use super::CudaTimes;
use crate::clock::clock;
use crate::name::{Name, TimeSource};

/// The statistics of one name. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Row {
    /// The name: a function's path with its type, or the argument `name`.
    pub name: String,
    /// The tag that loggers get.
    pub tag: String,
    /// The first call site of the name, as `file:line`.
    pub location: String,
    /// Finished calls, including recursive ones.
    pub calls: u64,
    /// Calls that were not made, directly or indirectly, from a call of the same name.
    pub primitive_calls: u64,
    /// The time of primitive calls including children: a recursive call counts once. For futures, the time from the
    /// first poll to the end.
    pub total_ns: f64,
    /// The total without measured children. For futures, the time of their polls without measured children.
    pub self_ns: f64,
    /// The mean of all calls.
    pub mean_ns: f64,
    /// The population standard deviation of all calls.
    pub std_ns: f64,
    /// The shortest call.
    pub min_ns: f64,
    /// The longest call.
    pub max_ns: f64,
    /// The median. Percentiles have the relative error given by
    /// [`Summary::percentile_error`](crate::Summary::percentile_error).
    pub p50_ns: f64,
    /// The 95th percentile.
    pub p95_ns: f64,
    /// The 99th percentile.
    pub p99_ns: f64,
    /// The total as a fraction of the wall time since the profiler was first used. Above 1 if several threads worked at
    /// once.
    pub wall_share: f64,
    /// Calls that were futures.
    pub futures: u64,
    /// The time of the polls of futures; for the rest of their total, the futures waited.
    pub polled_ns: f64,
    /// Calls that ended with a panic.
    pub panicked: u64,
    /// Futures that were dropped before they completed.
    pub dropped_futures: u64,
    /// Calls that have begun and not ended, recursive ones excluded. They are in no other column.
    pub open: u64,
    /// Log entries that found the ring full. The calls are in all other columns.
    pub dropped_entries: u64,
    /// Calls that ended out of order, before a scope inside them or after the one around them: the self time is an upper bound.
    pub out_of_order: u64,
    /// `true` if the calls are too short to be timed individually. The mean is correct; single values (minimum,
    /// maximum, percentiles, deviation) are not.
    pub too_short: bool,
    /// Its GPU times; `None` if no call ever had one.
    pub cuda: Option<CudaTimes>,
    /// Calls whose GPU time is missing; the summary says why.
    pub without_cuda: u64,
    /// Calls without a GPU time because no stream was named for them, on threads where a CUDA context was or had been
    /// current. A function that launches nothing has such calls too, and needs no stream.
    pub without_stream: u64,
    /// The time source of its loggers.
    pub source: TimeSource,
}

impl Row {
    /// Creates the row of a name; `None` if no call has begun.
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
            // The middle of a bucket may lie outside the observed range, and the minimum of a snapshot may be newer
            // than its maximum.
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
            out_of_order: totals.out_of_order,
            too_short: calls > 0 && p50 < clock().too_short() as f64,
            cuda,
            without_cuda: without_cuda + totals.without_cuda,
            without_stream: totals.without_stream,
            source: name.time_source(),
        })
    }
}
