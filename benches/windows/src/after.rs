//! The time of a call before the first session, during a session, and after the last has stopped.

use std::process::Command;
use std::time::{Duration, Instant};

use bench_harness::process::{hand_over, measured};
use bench_harness::{Outcome, Table, median, row};
use profiler_runtime::Profile;

use crate::work;

/// The batches in each process.
const BATCHES: usize = 3000;
const BATCH: u64 = 5000;
/// The window of the session is full.
const PHASES: [&str; 3] = ["before", "recording", "after"];

/// Runs each phase in separate processes, which alternate: the minimum of each process, and the median of these.
pub(crate) fn measure(rounds: usize) -> Outcome<Table> {
    let mut phases = [(); 3].map(|()| Vec::new());
    for _ in 0..rounds {
        for (phase, least) in PHASES.iter().zip(&mut phases) {
            let mut child = Command::new(std::env::current_exe()?);
            least.push(measured::<f64>(child.arg(phase))?);
        }
    }
    let mut table = Table::new(
        format!("a call, minimum of {BATCHES} batches, median of {rounds} processes"),
        "session | ns .2 | x before .3",
    );
    let before = median(&phases[0]);
    for (phase, least) in PHASES.iter().zip(&phases) {
        row!(table, *phase, median(least), median(least) / before);
    }
    Ok(table)
}

/// Measures the minimum time of a call in a phase.
pub(crate) fn child(phase: &str) -> Outcome<()> {
    bench_harness::settle(|| work::scopes(2));
    let session = (phase != "before").then(|| Profile::builder().capacity(1).start());
    let session = session.transpose()?;
    work::scopes(100_000);
    if phase == "after"
        && let Some(session) = &session
    {
        session.stop();
        let _ = session.wait(Duration::from_secs(10));
    }
    let batches = (0..BATCHES).map(|_| {
        let began = Instant::now();
        work::scopes(BATCH);
        began.elapsed().as_nanos() as f64 / BATCH as f64
    });
    hand_over(&batches.fold(f64::INFINITY, f64::min))
}
