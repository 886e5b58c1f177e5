//! The cost of a measured call on the host.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::CudaStream;
use profiler_runtime::{scope, set_enabled};

use crate::device::{Event, Gpu, raw};
use crate::figures::{differences, least, median};
use crate::findings::{Check, Findings, Theme};
use crate::measured::settle;
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "host cost",
    checks: &[
        Check {
            name: "a measured call costs little more than its two event records",
            bound: "the median over rounds of its time beyond two records, which are called \
                    through a pointer in the same round: at most 1 µs (the goal is 150 ns), \
                    and less than a synchronizing timer; off, at most 20 ns",
            run: idle,
        },
        Check {
            name: "a measured call costs no more while the device is busy",
            bound: "as on an idle stream",
            run: busy,
        },
    ],
};

/// The calls of each kind per round, and the rounds. No queue is full after that many calls.
const CALLS: u32 = 50;
const ROUNDS: usize = 100;

/// The kinds of calls to compare.
const KINDS: [&str; 7] = [
    "Instant::now",
    "cuEventRecord, twice",
    "measured call",
    "measured call, off",
    "launch of an empty kernel",
    "synchronizing timer",
    "measured call with `sync`",
];
const RECORDS: usize = 1;
const MEASURED: usize = 2;
const OFF: usize = 3;
/// The kinds from here on wait for the device.
const WAITING: usize = 5;

struct Bench<'a> {
    gpu: &'a Gpu,
    stream: Arc<CudaStream>,
    begin: Event,
    end: Event,
}

impl Bench<'_> {
    fn one(&self, kind: usize) -> Result<(), Trouble> {
        let handle = raw(&self.stream);
        match kind {
            0 => {
                black_box(Instant::now());
            }
            RECORDS => {
                self.begin.record(handle)?;
                self.end.record(handle)?;
            }
            MEASURED | OFF => {
                let _scope = scope!("cost", stream = &self.stream);
            }
            4 => self.gpu.kernels.empty(handle)?,
            WAITING => {
                self.begin.record(handle)?;
                self.end.record(handle)?;
                self.end.wait()?;
                black_box(self.end.since(&self.begin)?);
            }
            _ => {
                let _scope = scope!("cost of waiting", sync, stream = &self.stream);
            }
        }
        Ok(())
    }

    /// Returns the nanoseconds per call of a kind.
    fn batch(&self, kind: usize) -> Result<f64, Trouble> {
        set_enabled(kind != OFF);
        let began = Instant::now();
        for _ in 0..CALLS {
            self.one(kind)?;
        }
        let ns = began.elapsed().as_nanos() as f64 / f64::from(CALLS);
        set_enabled(true);
        Ok(ns)
    }

    /// Runs a round of all kinds, in a changing order, after a kernel of this length if one is
    /// given.
    fn round(&self, round: usize, plug: Option<u64>, into: &mut [Vec<f64>]) -> Result<(), Trouble> {
        let kinds = if plug.is_some() { WAITING } else { KINDS.len() };
        for place in 0..kinds {
            let kind = (place + round) % kinds;
            if let Some(ns) = plug {
                self.gpu.plug(&self.stream, ns)?;
            }
            into[kind].push(self.batch(kind)?);
            self.stream.synchronize()?;
        }
        // Let event pairs return to the pool.
        settle();
        Ok(())
    }
}

fn idle(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let costs = compare(gpu, findings, None, ROUNDS)?;
    costs.judge(gpu, findings);
    if !gpu.simulated {
        let Costs {
            measured, waiting, ..
        } = costs;
        findings.expect(measured < waiting, || {
            format!("a measured call takes {measured:.0} ns, a synchronizing timer {waiting:.0} ns")
        });
    }
    Ok(())
}

fn busy(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    compare(gpu, findings, Some(2_000_000), ROUNDS / 2)?.judge(gpu, findings);
    Ok(())
}

/// Medians in nanoseconds. NaN where a kind was not measured.
pub(super) struct Costs {
    /// What a measured call takes beyond its two records.
    own: f64,
    off: f64,
    measured: f64,
    waiting: f64,
}

impl Costs {
    fn judge(&self, gpu: &Gpu, findings: &mut Findings) {
        if gpu.simulated {
            findings.note("the figures are those of the simulated driver and have no bounds");
            return;
        }
        findings.expect_between("profiler's share in ns", self.own, -1_000.0, 1_000.0);
        findings.expect_between("off, in ns", self.off, 0.0, 20.0);
    }
}

/// Measures all kinds of calls in this many rounds, after a kernel of this length if one is given.
pub(super) fn compare(
    gpu: &Gpu,
    findings: &mut Findings,
    plug: Option<u64>,
    rounds: usize,
) -> Result<Costs, Trouble> {
    let rounds = gpu.rounds(rounds);
    let bench = Bench {
        gpu,
        stream: gpu.stream()?,
        begin: Event::new(gpu.driver)?,
        end: Event::new(gpu.driver)?,
    };
    let mut times = vec![Vec::with_capacity(rounds); KINDS.len()];
    // Warm up: the first rounds create names, event pairs and pages.
    let mut discarded = times.clone();
    for round in 0..5 {
        bench.round(round, plug, &mut discarded)?;
    }
    for round in 0..rounds {
        bench.round(round, plug, &mut times)?;
    }
    for (kind, times) in KINDS
        .iter()
        .zip(&times)
        .filter(|(_, times)| !times.is_empty())
    {
        findings.figure(format!("{kind}, median"), median(times), "ns");
        findings.figure(format!("{kind}, minimum"), least(times), "ns");
    }
    let own = differences(&times[MEASURED], &times[RECORDS]);
    findings.figure(
        "profiler's share of a measured call, median",
        median(&own),
        "ns",
    );
    let of_least = least(&times[MEASURED]) - least(&times[RECORDS]);
    findings.figure(
        "profiler's share of a measured call, of the minima",
        of_least,
        "ns",
    );
    Ok(Costs {
        own: median(&own),
        off: median(&times[OFF]),
        measured: median(&times[MEASURED]),
        waiting: median(&times[WAITING]),
    })
}
