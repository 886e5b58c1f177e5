//! A hundred million scopes in ten thousand windows, and the memory that they leave behind.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bench_harness::memory::{mib, resident};
use bench_harness::{Outcome, Table, row};
use profiler_runtime::{Profile, Schedule, Trace};

use crate::work;

const WINDOWS: u64 = 10_000;
const SCOPES_EACH: u64 = 10_000;
const SCOPES: u64 = WINDOWS * SCOPES_EACH;
/// The iterations of work between calls: a sixth of a microsecond per scope, a higher rate than
/// programs have.
const TURNS: u64 = 400;
/// The number of times at which the memory is read.
const LOOKS: u64 = 10;

/// What the windows hold, and what is missing from them.
#[derive(Clone, Copy, Default)]
struct Counts {
    windows: u64,
    scopes: u64,
    over_capacity: u64,
    ring_full: u64,
    handler_behind: u64,
    late: u64,
}

pub(crate) fn measure() -> Outcome<[Table; 2]> {
    let counts = Arc::new(Mutex::new(Counts::default()));
    let sums = Arc::clone(&counts);
    let session = Profile::builder()
        .schedule(Schedule::new().active(1))
        .on_trace_ready(move |trace: &Trace| {
            let missing = trace.truncation();
            let mut sums = sums.lock().expect("no handler has panicked");
            sums.windows += 1;
            sums.scopes += trace.len() as u64;
            sums.over_capacity += missing.over_capacity;
            sums.ring_full += missing.ring_full;
            sums.handler_behind += missing.handler_behind;
            sums.late += missing.late;
        })
        .start()?;
    let began = Instant::now();
    let mut memory = Table::new("resident memory", "windows | MiB");
    for window in 1..=WINDOWS {
        work::scopes_apart(SCOPES_EACH, TURNS);
        session.step();
        if window % (WINDOWS / LOOKS) == 0 {
            row!(memory, window.to_string(), resident().map(mib));
        }
    }
    session.stop();
    let _ = session.wait(Duration::from_secs(60));
    let seconds = began.elapsed().as_secs_f64();
    let counts = *counts.lock().map_err(|_| "a handler has panicked")?;
    let title = format!("{SCOPES} scopes in {} windows", counts.windows);
    let ns = seconds * 1e9 / SCOPES as f64;
    let table = Table::of_values(
        title,
        [
            ("seconds", seconds),
            ("ns per scope, while the threads of the profiler run", ns),
            ("scopes in windows", counts.scopes as f64),
            ("missing", SCOPES as f64 - counts.scopes as f64),
            ("because the ring was full", counts.ring_full as f64),
            ("because the window was full", counts.over_capacity as f64),
            (
                "because the handler was behind",
                counts.handler_behind as f64,
            ),
            ("because they came late", counts.late as f64),
        ],
    );
    Ok([table, memory])
}
