//! Calls without a pause: from which rate on the resolver falls behind.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use bench_harness::{Table, row};
use profiler_runtime::summary;

use crate::device::Gpu;
use crate::variants::{arrive, on_stream};

const LENGTH: Duration = Duration::from_secs(3);

/// Call patterns: how many calls at once, and how many in a second; no rate means as fast as possible.
const PACES: [(u64, Option<u64>); 7] = [
    (1, Some(100_000)),
    (100, Some(100_000)),
    (1_000, Some(100_000)),
    (1, Some(300_000)),
    (1, Some(600_000)),
    (1, Some(1_000_000)),
    (1_000, None),
];

/// The calls made with a pattern.
struct Made {
    calls: u64,
    seconds: f64,
    /// The time that each call took.
    nanoseconds: f64,
}

fn keep(burst: u64, rate: Option<u64>, length: Duration, call: impl Fn(u64) -> u64) -> Made {
    let began = Instant::now();
    let (mut calls, mut busy) = (0_u64, Duration::ZERO);
    while began.elapsed() < length {
        if let Some(rate) = rate {
            let due = Duration::from_secs_f64(calls as f64 / rate as f64);
            while began.elapsed() < due {
                spin_loop();
            }
        }
        let start = Instant::now();
        bench_harness::batch(burst, &call);
        busy += start.elapsed();
        calls += burst;
    }
    Made {
        calls,
        seconds: began.elapsed().as_secs_f64(),
        nanoseconds: busy.as_nanos() as f64 / calls as f64,
    }
}

/// Measures each pattern: what becomes of the GPU times of its calls.
pub(crate) fn measure() -> Table {
    let mut table = Table::new(
        "GPU times lost during calls without a pause",
        "without a pause | calls/s | ns/call | two records | % without GPU time .4 \
         | % background threads .1 | event pairs | reasons",
    );
    let gpu = Gpu::here();
    for (burst, rate) in PACES {
        let records = keep(burst, rate, LENGTH / 3, |x| gpu.two_records(x));
        arrive();
        let before = summary();
        let made = keep(burst, rate, LENGTH, |x| on_stream(&gpu.stream, x));
        arrive();
        let after = summary();
        let earlier = |reason| {
            let mut known = before.cuda.lost.iter();
            known
                .find(|(other, _)| *other == reason)
                .map_or(0, |(_, calls)| *calls)
        };
        let lost = after.cuda.lost.iter();
        let lost = lost.map(|&(reason, calls)| (reason.key(), calls - earlier(reason)));
        let lost: Vec<_> = lost.filter(|(_, calls)| *calls > 0).collect();
        let reasons = lost
            .iter()
            .map(|(reason, calls)| format!("{reason} {calls}"));
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        let lost: u64 = lost.iter().map(|(_, calls)| calls).sum();
        let [earlier, now] =
            [&before, &after].map(|summary| summary.own_cost.background * summary.wall_ns);
        let pace = match rate {
            Some(rate) => format!("{rate}/s, {burst} at once"),
            None => "as fast as possible".to_owned(),
        };
        row!(
            table,
            pace,
            made.calls as f64 / made.seconds,
            made.nanoseconds,
            records.nanoseconds,
            100.0 * lost as f64 / made.calls as f64,
            100.0 * (now - earlier) / (made.seconds * 1e9),
            after.cuda.pairs,
            reasons,
        );
    }
    table
}
