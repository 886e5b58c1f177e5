//! The positions of GPU times on the host's time line, compared with the host's clock, and how
//! sessions record them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use profiler_runtime::log::{CudaSpan, LogError, Scalar};
use profiler_runtime::{Profile, ScalarLogger, scope};
use serde_json::Value;

use crate::device::{Gpu, raw};
use crate::figures::{median, most};
use crate::findings::{Check, Findings, Theme};
use crate::measured::settle;
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "places",
    checks: &[
        Check {
            name: "a GPU time lies between the launch and the end that the host observes",
            bound: "50 kernels of 300 µs on an idle stream: none begins before the host \
                    reached the scope, or ends after the host's wait for it, by more than the \
                    reported uncertainty and 20 µs",
            run: between,
        },
        Check {
            name: "a session contains each GPU time, and writes it to its trace",
            bound: "30 kernels of 200 µs: each call has a GPU time; at least half of them lie no \
                    earlier than their scopes by more than the uncertainty and 20 µs; the \
                    medians as for streams; the file is JSON and contains each call at least \
                    twice: on the CPU and on the GPU",
            run: session,
        },
    ],
};

/// The host's clock may be adjusted slightly during a run.
const SLACK_NS: f64 = 20_000.0;

/// A logger that keeps the GPU times.
#[derive(Default)]
struct Kept(Mutex<Vec<(u64, Option<CudaSpan>)>>);

impl ScalarLogger for Kept {
    fn add_scalar(&self, _: &str, _: f64, _: u64) -> Result<(), LogError> {
        Ok(())
    }

    fn add(&self, scalar: &Scalar<'_>) -> Result<(), LogError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((scalar.step, scalar.cuda));
        Ok(())
    }
}

/// Returns the nanoseconds between two moments, negative if the second is earlier.
fn from_to(from: SystemTime, to: SystemTime) -> f64 {
    match to.duration_since(from) {
        Ok(after) => after.as_nanos() as f64,
        Err(before) => -(before.duration().as_nanos() as f64),
    }
}

fn between(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const CALLS: usize = 50;
    let (stream, kept) = (gpu.stream()?, Arc::new(Kept::default()));
    let mut bounds = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let before = SystemTime::now();
        {
            let _scope = scope!("placed by the host", stream = &stream, log = kept.clone());
            gpu.kernels.spin(raw(&stream), 300_000, 0)?;
        }
        stream.synchronize()?;
        bounds.push((before, SystemTime::now()));
        // An anchor is taken every second, so several are used.
        std::thread::sleep(Duration::from_millis(40));
    }
    settle();
    let mut spans = std::mem::take(&mut *kept.0.lock().unwrap_or_else(PoisonError::into_inner));
    spans.sort_unstable_by_key(|(step, _)| *step);
    findings.expect_count("calls with a place", spans.len() as u64, CALLS as u64);
    let (mut behind, mut off, mut reported) = (Vec::new(), Vec::new(), Vec::new());
    for ((_, span), (before, after)) in spans.into_iter().zip(bounds) {
        let place = span.and_then(|span| Some((span.start?, span.uncertainty_ns?, span.ms * 1e6)));
        let (start, uncertainty, ns) =
            place.ok_or_else(|| Trouble::Missing("a call has no place".to_owned()))?;
        let early = -from_to(before, start);
        let late = from_to(after, start) + ns;
        behind.push(-early);
        off.push(early.max(late) - uncertainty);
        reported.push(uncertainty);
    }
    findings.spread_us("from the scope's begin to the kernel's", &behind);
    findings.spread_us("reported uncertainty", &reported);
    findings.figure("beyond the uncertainty, greatest", most(&off) / 1e3, "µs");
    findings.expect(most(&off) <= SLACK_NS, || {
        format!(
            "a position is {:.1} µs off, more than the reported uncertainty",
            most(&off) / 1e3
        )
    });
    Ok(())
}

fn session(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const CALLS: u64 = 30;
    const NAME: &str = "in a session";
    let stream = gpu.stream()?;
    let refused = |error: &dyn std::fmt::Display| Trouble::Missing(error.to_string());
    // Costs are measured later in this process, which CUPTI could change.
    let profile = Profile::builder()
        .kernels(false)
        .start()
        .map_err(|error| refused(&error))?;
    for _ in 0..CALLS {
        let _scope = scope!("in a session", stream = &stream);
        gpu.kernels.spin(raw(&stream), 200_000, 0)?;
    }
    stream.synchronize()?;
    profile.stop();
    findings.expect(profile.wait(Duration::from_secs(10)), || {
        "the session had not ended after 10 s".to_owned()
    });
    let trace = profile.trace();
    let trace = trace.ok_or_else(|| Trouble::Missing("the session has no trace".to_owned()))?;
    let (mut lengths, mut early) = (Vec::new(), Vec::new());
    for event in trace.events().filter(|event| event.name() == NAME) {
        if let Some(span) = event.gpu()
            && let Some(start) = span.start_ns
        {
            lengths.push(span.ns);
            early.push((event.start_ns() - start) as f64 - span.uncertainty_ns);
        }
    }
    findings.expect_count(
        "calls with a GPU time and a place",
        lengths.len() as u64,
        CALLS,
    );
    findings.figure("median", median(&lengths) / 1e3, "µs");
    findings.figure("before its scope, greatest", most(&early) / 1e3, "µs");
    // Not the greatest: the scope's clock is read after its event was recorded. On an idle stream the device reaches the
    // event at once, and a thread that is preempted before it reads the clock begins the scope that much later.
    findings.expect(median(&early) <= SLACK_NS, || {
        format!(
            "half of the GPU times stand more than {:.1} µs before their scopes",
            median(&early) / 1e3
        )
    });
    let least = 200_000.0 * 0.968 - gpu.timer_step - 1_000.0;
    findings.expect_between("the median in ns", median(&lengths), least, 320_000.0);
    let path = std::env::temp_dir().join(format!("gpu-suite-{}.json", std::process::id()));
    let written = trace.export_chrome_trace(&path);
    let text = written
        .map_err(|error| refused(&error))
        .and_then(|()| Ok(std::fs::read_to_string(&path)?));
    // The file may be missing, which the next line reports.
    let _ = std::fs::remove_file(&path);
    let json: Value = serde_json::from_str(&text?)?;
    let events = json["traceEvents"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let with_name = events.iter().filter(|event| event["name"] == NAME).count();
    findings.figure("events of that name in the trace", with_name as f64, "");
    findings.expect(with_name as u64 >= 2 * CALLS, || {
        format!("the trace has {with_name} events of that name")
    });
    Ok(())
}
