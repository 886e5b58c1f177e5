//! The row of a name in a summary.

use profiler_report::internal::{Counters, StreamKey, Unsaved};
use profiler_report::{Histogram, Row, Times};

use crate::clock::clock;
use crate::name::Name;
use crate::stats::{GpuTimes, Totals};

/// Creates the row of a name, without percentages; `None` if no call has begun.
pub(super) fn of(name: &'static Name) -> Option<Row> {
    let totals = name.totals();
    let calls = totals.calls();
    if calls == 0 && totals.open() == 0 {
        return None;
    }
    let mut row = Row {
        name: name.text.clone(),
        tag: name.tag.clone(),
        location: name.location.in_files(),
        calls,
        primitive_calls: totals.primitive_calls(),
        without_cuda: totals.without_cuda,
        without_stream: totals.without_stream,
        futures: totals.futures,
        polled_ns: ns(totals.polled as f64),
        reentered_spans: totals.reentered_spans,
        panicked: totals.panicked,
        dropped_futures: totals.dropped_futures,
        open: totals.open(),
        out_of_order: totals.out_of_order,
        dropped_entries: totals.ring_full,
        source: name.time_source(),
        number: Unsaved(Some(name.id)),
        ..Row::default()
    };
    if totals.own_thread_time > 0 {
        row.thread_time_total_ns = Some(totals.thread_time as f64);
        row.self_thread_time_total_ns = Some(totals.own_thread_time as f64);
    }
    if calls > 0 {
        let percentiles = totals.buckets.quantiles([0.5, 0.95, 0.99]);
        let percentiles = percentiles.unwrap_or_default();
        row.too_short = percentiles[0] < clock().too_short() as f64;
        row.cpu = Some(cpu(&totals, percentiles));
        row.cpu_histogram = Some(Histogram::of(&totals.buckets, totals.max as f64, ns));
    }
    if let Some(totals) = name.cuda.read() {
        row.without_cuda += totals.without;
        if totals.has_times() {
            set_cuda(&mut row, &totals);
        }
    }
    Some(row)
}

fn cpu(totals: &Totals, percentiles: [f64; 3]) -> Times {
    let (min, max) = (totals.min as f64, totals.max as f64);
    // The middle of a bucket may lie outside the observed range, and the minimum of a snapshot may be newer than its
    // maximum.
    let [p50, p95, p99] = percentiles.map(|ticks| ticks.clamp(min, max.max(min)));
    Times {
        calls: totals.calls(),
        total_ns: ns(totals.total as f64),
        self_ns: ns(totals.own as f64),
        mean_ns: ns(totals.mean()),
        std_ns: ns(totals.deviation()),
        min_ns: ns(min),
        max_ns: ns(max),
        p50_ns: ns(p50),
        p95_ns: ns(p95),
        p99_ns: ns(p99),
        counters: Unsaved(Some(Counters {
            self_ns: ns(totals.own_rises.sum() as f64),
            sum_ns: ns(totals.rises.sum() as f64),
        })),
        ..Times::default()
    }
}

fn set_cuda(row: &mut Row, totals: &GpuTimes) {
    // Without calls, there are only times that something else measured: their sums are all that is known.
    let (min, max) = if totals.calls > 0 {
        (totals.min, totals.max)
    } else {
        (0.0, 0.0)
    };
    let percentiles = totals.buckets.quantiles([0.5, 0.95, 0.99]);
    // The middle of a bucket may lie outside the observed range.
    let [p50_ns, p95_ns, p99_ns] = percentiles.unwrap_or_default().map(|ns| ns.clamp(min, max));
    row.cuda = Some(Times {
        calls: totals.calls,
        total_ns: totals.total,
        self_ns: totals.own,
        mean_ns: totals.mean(),
        std_ns: totals.deviation(),
        min_ns: min,
        max_ns: max,
        p50_ns,
        p95_ns,
        p99_ns,
        // GPU times are not negative, and none is subtracted from a sum.
        counters: Unsaved(Some(Counters {
            self_ns: totals.own,
            sum_ns: totals.sum,
        })),
        ..Times::default()
    });
    if totals.calls > 0 {
        row.cuda_histogram = Some(Histogram::of(&totals.buckets, totals.max, |ns| ns));
    }
    row.launch_bound =
        (totals.judged > 0).then(|| totals.launch_bound as f64 / totals.judged as f64);
    row.other_streams_ns = Some(totals.other_streams);
    row.streams = totals
        .stream_keys
        .iter()
        .map(StreamKey::to_string)
        .collect();
    row.idle_stream = totals.idle_stream();
}

fn ns(ticks: f64) -> f64 {
    clock().nanoseconds(ticks).max(0.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::panic::Location;

    use profiler_report::Summary;

    use super::*;
    use crate::name::declared;

    /// Returns the counters of a name as Prometheus reads them, by the metric with its labels.
    fn scrape(name: &'static Name) -> BTreeMap<String, f64> {
        // As that of a file, which has a series of its own however many names other tests have made.
        let row = Row {
            number: Unsaved(None),
            ..of(name).expect("it was called")
        };
        let summary = Summary {
            rows: vec![row],
            ..Summary::default()
        };
        let text = summary.to_prometheus();
        let ends = ["_total", "_sum", "_count", "_bucket"];
        let is_counter = |series: &str| {
            let metric = series.split('{').next().unwrap_or(series);
            ends.iter().any(|end| metric.ends_with(end))
        };
        let samples = text.lines().filter_map(|line| line.rsplit_once(' '));
        let counters = samples.filter(|(series, _)| !series.starts_with('#') && is_counter(series));
        counters
            .map(|(series, value)| (series.to_owned(), value.parse().expect("a number")))
            .collect()
    }

    #[test]
    fn no_counter_falls_where_the_clock_makes_single_times_negative() {
        let name = declared("row: near zero", Location::caller());
        let cell = name.new_cell().expect("memory");
        let long = 1_000_000_007;
        let _ = cell.count(long, long, true);
        let mut before = scrape(name);
        let mut rises = 0;
        for call in 0..3_000_i64 {
            // From −7 to 3, so that the sums fall in the long run.
            let ticks = 7 * call % 11 - 7;
            rises += ticks.max(0);
            let outermost = call % 4 != 0;
            let _ = cell.count(ticks, ticks, outermost);
            let now = scrape(name);
            assert_eq!(now.len(), before.len());
            for (series, value) in &now {
                assert!(*value >= before[series], "{series} falls at call {call}");
            }
            before = now;
        }
        let counter = |metric: &str| {
            let series = format!("{metric}{{name=\"row: near zero\",clock=\"cpu\"}}");
            before[&series]
        };
        let seconds = ns((long + rises) as f64) / 1e9;
        for metric in ["profiler_self_seconds_total", "profiler_call_seconds_sum"] {
            assert!((counter(metric) / seconds - 1.0).abs() < 1e-12, "{metric}");
        }
        let times = of(name).and_then(|row| row.cpu).expect("calls");
        let own = ns(name.totals().own as f64);
        assert!((times.self_ns - own).abs() < 1e-6, "the row keeps the sum");
    }
}
