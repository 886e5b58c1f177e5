//! A hundred million scopes in ten thousand windows, and the memory that they leave behind.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bench_harness::memory::resident;
use profiler_runtime::{Profile, Schedule, Trace};
use serde::Serialize;

use crate::work;

const WINDOWS: u64 = 10_000;
const SCOPES_EACH: u64 = 10_000;
/// The iterations of work between calls: a sixth of a microsecond per scope, a higher rate than
/// programs have.
const TURNS: u64 = 400;
/// The number of times at which the memory is read.
const LOOKS: u64 = 10;

#[derive(Default)]
struct Counts {
    windows: AtomicU64,
    scopes: AtomicU64,
    over_capacity: AtomicU64,
    ring_full: AtomicU64,
    handler_behind: AtomicU64,
    late: AtomicU64,
}

#[derive(Serialize)]
pub(crate) struct Report {
    seconds: f64,
    windows: u64,
    made: u64,
    held: u64,
    over_capacity: u64,
    ring_full: u64,
    handler_behind: u64,
    late: u64,
    resident: Vec<u64>,
}

impl Report {
    pub(crate) fn measure() -> Result<Self, Box<dyn std::error::Error>> {
        let counts = Arc::new(Counts::default());
        let sums = Arc::clone(&counts);
        let session = Profile::builder()
            .schedule(Schedule::new().active(1))
            .on_trace_ready(move |trace: &Trace| {
                let missing = trace.truncation();
                sums.windows.fetch_add(1, Relaxed);
                sums.scopes.fetch_add(trace.len() as u64, Relaxed);
                sums.over_capacity.fetch_add(missing.over_capacity, Relaxed);
                sums.ring_full.fetch_add(missing.ring_full, Relaxed);
                sums.handler_behind
                    .fetch_add(missing.handler_behind, Relaxed);
                sums.late.fetch_add(missing.late, Relaxed);
            })
            .start()?;
        let began = Instant::now();
        let mut seen = Vec::new();
        for window in 0..WINDOWS {
            work::scopes_apart(SCOPES_EACH, TURNS);
            session.step();
            if (window + 1) % (WINDOWS / LOOKS) == 0 {
                seen.push(resident().unwrap_or_default());
            }
        }
        session.stop();
        let _ = session.wait(Duration::from_secs(60));
        Ok(Self {
            seconds: began.elapsed().as_secs_f64(),
            windows: counts.windows.load(Relaxed),
            made: WINDOWS * SCOPES_EACH,
            held: counts.scopes.load(Relaxed),
            over_capacity: counts.over_capacity.load(Relaxed),
            ring_full: counts.ring_full.load(Relaxed),
            handler_behind: counts.handler_behind.load(Relaxed),
            late: counts.late.load(Relaxed),
            resident: seen,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} scopes in {} windows, {:.0} s ({:.0} ns per scope, while the threads of the profiler run)",
            self.made,
            self.windows,
            self.seconds,
            self.seconds * 1e9 / self.made as f64
        )?;
        let missing = self.made - self.held.min(self.made);
        writeln!(
            f,
            "  {} in windows; {missing} missing: {} because the ring was full, {} the window was full, {} the handler was behind, {} they came late",
            self.held, self.ring_full, self.over_capacity, self.handler_behind, self.late
        )?;
        let mib: Vec<String> = self
            .resident
            .iter()
            .map(|bytes| format!("{:.0}", *bytes as f64 / f64::from(1 << 20)))
            .collect();
        writeln!(f, "  resident, MiB: {}", mib.join(" "))
    }
}
