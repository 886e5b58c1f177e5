//! Queries the driver for behaviour that NVIDIA does not document.
//!
//! These checks fail only if a call that should succeed fails. The results are figures and notes,
//! and the rest of the project works with either behaviour.

use std::time::{Duration, Instant};

use crate::device::{Event, Gpu, raw};
use crate::driver::Driver;
use crate::figures::{least, median};
use crate::findings::{Check, Findings, Theme};
use crate::graph::{Graph, THREAD_LOCAL};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "questions",
    checks: &[
        Check {
            name: "which functions does the driver export?",
            bound: "none; the results are notes",
            run: exports,
        },
        Check {
            name: "what do calls return without a current context?",
            bound: "none; the results are notes",
            run: without_context,
        },
        Check {
            name: "what do the driver calls of a profiler cost?",
            bound: "none; the results are figures",
            run: costs,
        },
        Check {
            name: "what does a pair of events cost the device?",
            bound: "none; the results are figures",
            run: device_cost,
        },
        Check {
            name: "what do the events of a graph return while launches are queued?",
            bound: "none; the results are notes",
            run: replays,
        },
    ],
};

#[allow(clippy::unnecessary_wraps, reason = "all checks have one type")]
fn exports(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let names = [
        "cuEventElapsedTime",
        "cuEventElapsedTime_v2",
        "cuEventRecordWithFlags",
        "cuGetProcAddress",
        "cuStreamGetId",
        "cuCtxGetId",
        "cuStreamGetCtx",
        "cuStreamGetCtx_v2",
    ];
    for name in names {
        let answer = if gpu.driver.exports(name) {
            "yes"
        } else {
            "no"
        };
        findings.note(format!("{name}: {answer}"));
    }
    Ok(())
}

fn without_context(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let (driver, stream) = (gpu.driver, gpu.stream()?);
    let (begin, end) = (Event::new(driver)?, Event::new(driver)?);
    let (first, second, handle) = (begin.handle, end.handle, raw(&stream));
    let answers = std::thread::spawn(move || {
        let current = driver.current();
        let recorded = driver.cuEventRecord(first, handle);
        let ended = driver.cuEventRecord(second, handle);
        let waited = driver.cuEventSynchronize(second);
        let queried = driver.cuEventQuery(second);
        let elapsed = driver.elapsed(first, second).err().unwrap_or(0);
        let on_default = driver.cuEventRecord(first, 0);
        let mut state = 0;
        let capturing = driver.cuStreamIsCapturing(handle, &raw mut state);
        (
            current,
            [
                recorded, ended, waited, queried, elapsed, on_default, capturing,
            ],
        )
    });
    let (current, codes) = answers
        .join()
        .map_err(|_| Trouble::Missing("it panicked".to_owned()))?;
    findings.note(format!(
        "a thread that made no call has a current context: {}",
        current != 0
    ));
    let calls = [
        "record",
        "record",
        "synchronize",
        "query",
        "elapsed",
        "record on the default stream",
        "is a named stream capturing",
    ];
    for (call, code) in calls.into_iter().zip(codes) {
        findings.note(format!("{call}: {code}"));
    }
    stream.synchronize().map_err(Trouble::from)
}

/// Returns the nanoseconds per call: the minimum over some batches.
fn cost(mut call: impl FnMut() -> u32) -> f64 {
    let batch = |call: &mut dyn FnMut() -> u32| {
        let began = Instant::now();
        for _ in 0..200 {
            std::hint::black_box(call());
        }
        began.elapsed().as_nanos() as f64 / 200.0
    };
    let batches: Vec<f64> = (0..20).map(|_| batch(&mut call)).collect();
    least(&batches)
}

fn costs(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let (driver, stream) = (gpu.driver, gpu.stream()?);
    let (begin, end, handle) = (Event::new(driver)?, Event::new(driver)?, raw(&stream));
    begin.record(handle)?;
    end.record(handle)?;
    stream.synchronize()?;
    findings.figure(
        "cuCtxGetCurrent",
        cost(|| u32::from(driver.current() == 0)),
        "ns",
    );
    let mut state = 0;
    let is_capturing = || driver.cuStreamIsCapturing(handle, &raw mut state);
    findings.figure("cuStreamIsCapturing", cost(is_capturing), "ns");
    findings.figure(
        "cuEventQuery, finished",
        cost(|| driver.cuEventQuery(end.handle)),
        "ns",
    );
    let elapsed = || driver.elapsed(begin.handle, end.handle).err().unwrap_or(0);
    findings.figure("cuEventElapsedTime", cost(elapsed), "ns");
    let round_trips: Vec<f64> = (0..50)
        .map(|_| {
            let start = Instant::now();
            end.record(handle)?;
            end.wait()?;
            Ok(start.elapsed().as_nanos() as f64)
        })
        .collect::<Result<_, Trouble>>()?;
    findings.figure(
        "record and synchronize on an idle stream, median",
        median(&round_trips),
        "ns",
    );
    gpu.plug(&stream, 20_000_000)?;
    end.record(handle)?;
    findings.figure(
        "cuEventQuery, not finished",
        cost(|| driver.cuEventQuery(end.handle)),
        "ns",
    );
    stream.synchronize().map_err(Trouble::from)
}

fn device_cost(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const KERNELS: u32 = 200;
    let stream = gpu.stream()?;
    let handle = raw(&stream);
    let (begin, end) = (Event::new(gpu.driver)?, Event::new(gpu.driver)?);
    let inner = Event::new(gpu.driver)?;
    let run = |with_events: bool| {
        gpu.plug(&stream, 20_000_000)?;
        begin.record(handle)?;
        for _ in 0..KERNELS {
            if with_events {
                inner.record(handle)?;
            }
            gpu.kernels.spin(handle, 5_000, 0)?;
            if with_events {
                inner.record(handle)?;
            }
        }
        end.record(handle)?;
        end.wait()?;
        Ok::<_, Trouble>(end.since(&begin)? / f64::from(KERNELS))
    };
    let (mut bare, mut paired) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        bare.push(run(false)?);
        paired.push(run(true)?);
    }
    findings.figure("a queued kernel of 5 µs, bare", median(&bare), "ns");
    findings.figure(
        "a queued kernel of 5 µs between two events",
        median(&paired),
        "ns",
    );
    Ok(())
}

/// The length of the kernel in each launch.
const REPLAY_NS: u64 = 20_000_000;

/// The driver's results for two events in a graph.
#[derive(Clone, Copy, PartialEq)]
struct Said {
    begin: u32,
    end: u32,
    elapsed: Result<f64, u32>,
}

impl Said {
    fn now(driver: &Driver, begin: &Event, end: &Event) -> Self {
        Self {
            begin: driver.cuEventQuery(begin.handle),
            end: driver.cuEventQuery(end.handle),
            elapsed: driver.elapsed(begin.handle, end.handle),
        }
    }

    fn note(&self, findings: &mut Findings, when: &str) {
        let elapsed = match self.elapsed {
            Ok(ns) => format!("{:.3} ms", ns / 1e6),
            Err(code) => code.to_string(),
        };
        findings.note(format!(
            "{when}: query of the first event {}, of the second {}, elapsed {elapsed}",
            self.begin, self.end
        ));
    }
}

fn replays(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    // `CU_EVENT_RECORD_EXTERNAL`: the graph records the event at each launch.
    const EXTERNAL: u32 = 1;
    let (driver, stream) = (gpu.driver, gpu.stream()?);
    let handle = raw(&stream);
    let (begin, end) = (Event::new(driver)?, Event::new(driver)?);
    let record = |event: &Event| {
        let code = driver.cuEventRecordWithFlags(event.handle, handle, EXTERNAL);
        driver.check("cuEventRecordWithFlags", code)
    };
    let graph = Graph::capture(driver, handle, THREAD_LOCAL, || {
        record(&begin)?;
        gpu.kernels.spin(handle, REPLAY_NS, 0)?;
        record(&end)
    })?;
    let say = || Said::now(driver, &begin, &end);
    say().note(findings, "captured, not launched");
    graph.launch(handle)?;
    say().note(findings, "the first launch is queued");
    stream.synchronize()?;
    say().note(findings, "the first launch has finished");
    let start = Instant::now();
    graph.launch(handle)?;
    graph.launch(handle)?;
    // Only note changes: on any driver there are a few at most.
    let (mut before, mut changes) = (None, 0);
    while changes < 16 && start.elapsed() < Duration::from_nanos(3 * REPLAY_NS) {
        let said = say();
        if before != Some(said) {
            let ms = start.elapsed().as_secs_f64() * 1e3;
            said.note(findings, &format!("{ms:.1} ms after two more were queued"));
            before = Some(said);
            changes += 1;
        }
    }
    stream.synchronize()?;
    say().note(findings, "all launches have finished");
    Ok(())
}
