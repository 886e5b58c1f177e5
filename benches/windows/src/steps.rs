//! The time of `step()` while a window of a million scopes of another session is built and written.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use profiler_runtime::{Profile, Schedule, Trace};
use serde::Serialize;

use crate::{large, work};

#[derive(Serialize)]
pub(crate) struct Report {
    steps: usize,
    /// Microseconds.
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
    /// The maximum of the steps during which the system did not preempt the thread.
    max_undisturbed: f64,
    disturbed: usize,
    over_a_millisecond: usize,
    /// The step that closed the large window.
    closing: f64,
}

impl Report {
    pub(crate) fn measure() -> Result<Self, Box<dyn std::error::Error>> {
        let path =
            std::env::temp_dir().join(format!("profiler-bench-{}.json.gz", std::process::id()));
        let is_written = Arc::new(AtomicBool::new(false));
        let (file, written) = (path.clone(), Arc::clone(&is_written));
        let large = Profile::builder()
            .schedule(Schedule::new().active(1).repeat(1))
            .capacity(large::CAPACITY)
            .on_trace_ready(move |trace: &Trace| {
                let outcome = trace.export_chrome_trace(&file);
                written.store(true, Relaxed);
                outcome
            })
            .start()?;
        work::scopes_apart(large::SCOPES.into(), large::TURNS);
        let other = Profile::builder()
            .schedule(Schedule::new().wait(1).warmup(1).active(2))
            .on_trace_ready(|_: &Trace| ())
            .start()?;
        let began = Instant::now();
        large.step();
        let closing = began.elapsed();
        let mut steps = Vec::new();
        while !is_written.load(Relaxed) {
            work::scopes(20);
            let before = switches();
            let began = Instant::now();
            other.step();
            steps.push((began.elapsed(), switches() != before));
            std::thread::sleep(Duration::from_micros(200));
        }
        other.stop();
        large.stop();
        let _ = (
            other.wait(Duration::from_secs(60)),
            large.wait(Duration::from_secs(60)),
        );
        std::fs::remove_file(path)?;
        Ok(Self::of(steps, closing))
    }

    fn of(mut steps: Vec<(Duration, bool)>, closing: Duration) -> Self {
        let microseconds = |step: &(Duration, bool)| step.0.as_secs_f64() * 1e6;
        steps.sort_unstable();
        // In thousandths.
        let at = |share: usize| microseconds(&steps[(steps.len() - 1) * share / 1000]);
        let undisturbed = steps.iter().filter(|(_, disturbed)| !disturbed);
        Self {
            steps: steps.len(),
            p50: at(500),
            p99: at(990),
            p999: at(999),
            max: at(1000),
            max_undisturbed: undisturbed.map(microseconds).fold(0.0, f64::max),
            disturbed: steps.iter().filter(|(_, disturbed)| *disturbed).count(),
            over_a_millisecond: steps
                .iter()
                .filter(|(took, _)| took.as_millis() >= 1)
                .count(),
            closing: closing.as_secs_f64() * 1e6,
        }
    }
}

/// Returns how often the system has preempted this thread.
fn switches() -> i64 {
    // SAFETY: the structure consists of integers, for which zero is valid. It lives during the
    // call, which fills it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "step() of another session while that window is built and written, {} steps",
            self.steps
        )?;
        writeln!(
            f,
            "  p50 {:.1} µs, p99 {:.1} µs, p99.9 {:.1} µs, max {:.1} µs; {} of 1 ms or more",
            self.p50, self.p99, self.p999, self.max, self.over_a_millisecond
        )?;
        writeln!(
            f,
            "  max {:.1} µs without the {} steps in which the system preempted the thread; the bound is 1 ms",
            self.max_undisturbed, self.disturbed
        )?;
        writeln!(
            f,
            "  the step() that closed the large window: {:.1} µs",
            self.closing
        )
    }
}
