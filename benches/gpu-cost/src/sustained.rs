//! Calls without a pause: from which rate on the resolver falls behind.

use std::collections::BTreeMap;
use std::hint::spin_loop;
use std::time::{Duration, Instant};

use bench_harness::batch;
use profiler_runtime::summary;
use serde::{Deserialize, Serialize};

use crate::gpu::Gpu;
use crate::subjects::{self, arrive};

const LENGTH: Duration = Duration::from_secs(3);

/// A call pattern: `burst` calls at once, at a rate per second; no rate means as fast as possible.
#[derive(Clone, Copy, Debug)]
struct Pace {
    burst: u64,
    per_second: Option<u64>,
}

const PACES: [Pace; 7] = [
    pace(1, 100_000),
    pace(100, 100_000),
    pace(1_000, 100_000),
    pace(1, 300_000),
    pace(1, 600_000),
    pace(1, 1_000_000),
    Pace {
        burst: 1_000,
        per_second: None,
    },
];

const fn pace(burst: u64, per_second: u64) -> Pace {
    Pace {
        burst,
        per_second: Some(per_second),
    }
}

/// The outcome of the GPU times of some calls.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sustained {
    pub(crate) burst: u64,
    pub(crate) wanted_per_second: Option<u64>,
    pub(crate) calls: u64,
    pub(crate) per_second: f64,
    /// The time that the calls took.
    pub(crate) nanoseconds: f64,
    /// The time that two records per call take in the same pattern.
    pub(crate) records_nanoseconds: f64,
    /// The calls without a GPU time, by reason.
    pub(crate) lost: BTreeMap<String, u64>,
    /// The processor time of the profiler's threads, as a share of the elapsed time.
    pub(crate) background: f64,
    pub(crate) pairs: usize,
}

pub(crate) fn measure() -> Vec<Sustained> {
    PACES.into_iter().map(one).collect()
}

/// The calls made with a pattern.
struct Made {
    calls: u64,
    seconds: f64,
    /// The time that the calls took.
    busy: Duration,
}

impl Made {
    fn nanoseconds(&self) -> f64 {
        self.busy.as_nanos() as f64 / self.calls as f64
    }
}

impl Pace {
    fn keep(self, length: Duration, call: impl Fn(u64) -> u64) -> Made {
        let began = Instant::now();
        let (mut calls, mut busy) = (0_u64, Duration::ZERO);
        while began.elapsed() < length {
            if let Some(rate) = self.per_second {
                let due = Duration::from_secs_f64(calls as f64 / rate as f64);
                while began.elapsed() < due {
                    spin_loop();
                }
            }
            let start = Instant::now();
            batch(self.burst, &call);
            busy += start.elapsed();
            calls += self.burst;
        }
        Made {
            calls,
            seconds: began.elapsed().as_secs_f64(),
            busy,
        }
    }
}

fn one(pace: Pace) -> Sustained {
    let gpu = Gpu::here();
    let records = pace.keep(LENGTH / 3, |x| gpu.two_records(x));
    arrive();
    let before = State::now();
    let made = pace.keep(LENGTH, |x| subjects::on_stream(&gpu.stream, x));
    arrive();
    let after = State::now();
    Sustained {
        burst: pace.burst,
        wanted_per_second: pace.per_second,
        calls: made.calls,
        per_second: made.calls as f64 / made.seconds,
        nanoseconds: made.nanoseconds(),
        records_nanoseconds: records.nanoseconds(),
        lost: after.lost_since(&before),
        background: (after.background_ns - before.background_ns) / (made.seconds * 1e9),
        pairs: after.pairs,
    }
}

/// The profiler's own statistics.
struct State {
    lost: BTreeMap<String, u64>,
    background_ns: f64,
    pairs: usize,
}

impl State {
    fn now() -> Self {
        let summary = summary();
        let lost = summary.cuda.lost.into_iter();
        Self {
            lost: lost
                .map(|(why, calls)| (why.key().to_owned(), calls))
                .collect(),
            background_ns: summary.own_cost.background * summary.wall_ns,
            pairs: summary.cuda.pairs,
        }
    }

    fn lost_since(&self, earlier: &Self) -> BTreeMap<String, u64> {
        let since = |(why, calls): (&String, &u64)| {
            let calls = calls - earlier.lost.get(why).copied().unwrap_or(0);
            (calls > 0).then(|| (why.clone(), calls))
        };
        self.lost.iter().filter_map(since).collect()
    }
}
