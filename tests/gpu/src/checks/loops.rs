//! A loop like that of a training, measured in several ways.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;
use profiler_runtime::{measure_execution_time, set_enabled, summary};

use crate::device::{Event, Gpu, raw};
use crate::figures::median;
use crate::findings::{Check, Findings, Theme};
use crate::measured::{row, settle};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "slowdown",
    checks: &[
        Check {
            name: "a loop that keeps the device busy is hardly slowed down",
            bound: "steps of 120 kernels of 160 µs: the median slowdown over rounds is at most \
                    2 % off; on, it is at most 2 % more than with two events of the suite \
                    around each kernel, since recording events takes the device a few µs in \
                    any case (up to 5 % in this loop); at most 10 % in total (the goal is 1 \
                    %), and less than with synchronizing timers; every call has a GPU time",
            run: device_bound,
        },
        Check {
            name: "a loop that keeps the host busy is hardly slowed down",
            bound: "steps of 120 times 150 µs of host work and a kernel of 50 µs: as above",
            run: host_bound,
        },
        Check {
            name: "how much do events slow down a loop of kernels of 2, 5 and 10 µs?",
            bound: "120 kernels per step: every call has a GPU time. The slowdowns have no \
                    bound: two events take the device about as long as such a kernel",
            run: short_kernels,
        },
    ],
};

const LAYERS: u64 = 120;
const ROUNDS: usize = 15;
const MODES: [&str; 6] = [
    "bare",
    "off",
    "two unread events",
    "on",
    "`sync`",
    "a synchronizing timer",
];
const EVENTS: usize = 2;
const ON: usize = 3;
const WAITING: usize = 5;

/// The ways to measure a step.
struct Model<'a> {
    gpu: &'a Gpu,
    stream: Arc<CudaStream>,
    begin: Event,
    end: Event,
    kernel_ns: u64,
    host: Duration,
}

impl Model<'_> {
    fn work(&self) -> Result<(), Trouble> {
        let began = Instant::now();
        self.gpu
            .kernels
            .spin(raw(&self.stream), self.kernel_ns, 0)?;
        while began.elapsed() < self.host {
            std::hint::spin_loop();
        }
        Ok(())
    }

    #[measure_execution_time(name = "layer", stream = &self.stream)]
    fn measured(&self) -> Result<(), Trouble> {
        self.work()
    }

    #[measure_execution_time(name = "layer, waiting", sync, stream = &self.stream)]
    fn synchronous(&self) -> Result<(), Trouble> {
        self.work()
    }

    /// Two events per layer, the minimum cost of any measurement by events.
    fn with_events(&self) -> Result<(), Trouble> {
        self.begin.record(raw(&self.stream))?;
        self.work()?;
        self.end.record(raw(&self.stream))
    }

    /// A wait per layer, as most programs time their kernels.
    fn with_timer(&self) -> Result<(), Trouble> {
        self.with_events()?;
        self.end.wait()?;
        std::hint::black_box(self.end.since(&self.begin)?);
        Ok(())
    }

    /// Returns the milliseconds of a step, until its work on the device has finished.
    fn step(&self, mode: usize) -> Result<f64, Trouble> {
        set_enabled(mode >= ON);
        let began = Instant::now();
        for _ in 0..LAYERS {
            match mode {
                0 => self.work()?,
                1 | ON => self.measured()?,
                EVENTS => self.with_events()?,
                4 => self.synchronous()?,
                _ => self.with_timer()?,
            }
        }
        self.stream.synchronize()?;
        let ms = began.elapsed().as_secs_f64() * 1e3;
        set_enabled(true);
        Ok(ms)
    }
}

/// Returns by how many per cent each way is slower than the bare loop.
pub(super) struct Slower([f64; MODES.len()]);

impl Slower {
    fn judge(&self, gpu: &Gpu, findings: &mut Findings) {
        if gpu.simulated {
            findings.note("the slowdowns are the simulated driver's, and are not judged");
            return;
        }
        findings.expect_between("slower off, in %", self.0[1], -5.0, 2.0);
        findings.expect_between("slower on, in %", self.0[ON], -5.0, 10.0);
        findings.expect(self.0[ON] <= self.0[EVENTS] + 2.0, || {
            format!(
                "on is {:.2} % slower, two events alone {:.2} %",
                self.0[ON], self.0[EVENTS]
            )
        });
        let waiting = self.0[WAITING];
        findings.expect(self.0[ON] < waiting, || {
            format!(
                "on is {:.2} % slower, a synchronizing timer {waiting:.2} %",
                self.0[ON]
            )
        });
    }
}

fn device_bound(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    compare(gpu, findings, 160_000, Duration::ZERO, ROUNDS)?.judge(gpu, findings);
    Ok(())
}

fn short_kernels(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    for us in [2, 5, 10] {
        let mut of_length = Findings::default();
        compare(gpu, &mut of_length, us * 1_000, Duration::ZERO, ROUNDS)?;
        findings.add(&format!("kernels of {us} µs"), of_length);
    }
    Ok(())
}

fn host_bound(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let host = Duration::from_micros(150);
    compare(gpu, findings, 50_000, host, ROUNDS)?.judge(gpu, findings);
    Ok(())
}

/// Measures a loop in all ways, in this many rounds.
pub(super) fn compare(
    gpu: &Gpu,
    findings: &mut Findings,
    kernel_ns: u64,
    host: Duration,
    rounds: usize,
) -> Result<Slower, Trouble> {
    let rounds = gpu.rounds(rounds);
    let model = Model {
        gpu,
        stream: gpu.stream()?,
        begin: Event::new(gpu.driver)?,
        end: Event::new(gpu.driver)?,
        kernel_ns,
        host,
    };
    let before = counted();
    for mode in 0..MODES.len() {
        model.step(mode)?;
    }
    let mut times = [const { Vec::<f64>::new() }; MODES.len()];
    for round in 0..rounds {
        for place in 0..MODES.len() {
            let mode = (place + round) % MODES.len();
            times[mode].push(model.step(mode)?);
        }
    }
    findings.figure("a step, bare, median", median(&times[0]), "ms");
    let mut slower = [0.0; MODES.len()];
    for (mode, name) in MODES.iter().enumerate().skip(1) {
        let pairs = times[mode].iter().zip(&times[0]);
        let shares: Vec<f64> = pairs
            .map(|(with, without)| (with / without - 1.0) * 100.0)
            .collect();
        slower[mode] = median(&shares);
        findings.figure(format!("slower: {name}, median"), slower[mode], "%");
    }
    let row = row("layer")?;
    let calls = LAYERS * (rounds as u64 + 1);
    let after = (row.calls, row.cuda.as_ref().map_or(0, |times| times.calls));
    findings.expect_count("calls", after.0 - before.0, calls);
    findings.expect_count("calls with a GPU time", after.1 - before.1, calls);
    if let (Some(verdict), Some(launch_bound)) = (row.verdict(), row.launch_bound) {
        findings.note(format!(
            "`layer` so far: {verdict:?}, {:.0} % launch-bound",
            launch_bound * 100.0
        ));
    }
    let cost = summary().own_cost;
    findings.figure(
        "profiler's own cost so far: measured threads",
        cost.measured_threads * 100.0,
        "%",
    );
    findings.figure(
        "profiler's own cost so far: background threads",
        cost.background * 100.0,
        "%",
    );
    Ok(Slower(slower))
}

/// Returns the number of calls of `layer` so far, and of those with a GPU time.
fn counted() -> (u64, u64) {
    settle();
    let summary = summary();
    let row = summary.row("layer");
    row.map_or((0, 0), |row| {
        (row.calls, row.cuda.as_ref().map_or(0, |times| times.calls))
    })
}
