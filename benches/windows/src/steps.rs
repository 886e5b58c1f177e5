//! The time of `step()` while a window of a million scopes of another session is built and written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bench_harness::{Outcome, Table};
use profiler_runtime::{Profile, Schedule, Trace};

use crate::{large, work};

pub(crate) fn measure() -> Outcome<Table> {
    let path = std::env::temp_dir().join(format!("profiler-bench-{}.json.gz", std::process::id()));
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
    Ok(table(steps, closing))
}

/// The times of the steps, each with whether the system has preempted the thread during it.
fn table(mut steps: Vec<(Duration, bool)>, closing: Duration) -> Table {
    let microseconds = |took: Duration| took.as_secs_f64() * 1e6;
    steps.sort_unstable();
    // In thousandths.
    let at = |share: usize| microseconds(steps[(steps.len() - 1) * share / 1000].0);
    let undisturbed = steps.iter().filter(|(_, disturbed)| !disturbed);
    let most = undisturbed.clone().map(|(took, _)| *took).max();
    let long = steps.iter().filter(|(took, _)| took.as_millis() >= 1);
    let disturbed = steps.len() - undisturbed.count();
    Table::of_values(
        "step() of another session while that window is built and written, in µs; the bound is 1 ms",
        [
            ("steps", steps.len() as f64),
            ("p50", at(500)),
            ("p99", at(990)),
            ("p99.9", at(999)),
            ("max", at(1000)),
            ("steps of 1 ms or more", long.count() as f64),
            (
                "steps in which the system preempted the thread",
                disturbed as f64,
            ),
            ("max without them", most.map_or(f64::NAN, microseconds)),
            (
                "the step() that closed the large window",
                microseconds(closing),
            ),
        ],
    )
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
