//! The time of a call before the first session, during a session, and after the last has stopped.

use std::fmt;
use std::process::Command;
use std::time::{Duration, Instant};

use bench_harness::median;
use profiler_runtime::Profile;
use serde::Serialize;

use crate::work;

/// The batches in each process.
const BATCHES: usize = 3000;
const BATCH: u64 = 5000;
const PHASES: [&str; 3] = ["before", "recording", "after"];

/// The nanoseconds of one call: the minimum of each process, and the median of these.
#[derive(Serialize)]
pub(crate) struct Report {
    before: Vec<f64>,
    recording: Vec<f64>,
    after: Vec<f64>,
}

impl Report {
    /// Runs each phase in separate processes, which alternate.
    pub(crate) fn measure(rounds: usize) -> Result<Self, Box<dyn std::error::Error>> {
        let mut phases = [(); 3].map(|()| Vec::new());
        for _ in 0..rounds {
            for (phase, least) in PHASES.iter().zip(&mut phases) {
                let child = Command::new(std::env::current_exe()?).arg(phase).output()?;
                least.push(String::from_utf8(child.stdout)?.trim().parse()?);
            }
        }
        let [before, recording, after] = phases;
        Ok(Self {
            before,
            recording,
            after,
        })
    }
}

/// Prints the minimum time of a call in a phase.
pub(crate) fn child(phase: &str, _calls: u64) -> Result<(), Box<dyn std::error::Error>> {
    work::settle();
    let session = (phase != "before").then(|| Profile::builder().capacity(1).start());
    let session = session.transpose()?;
    work::scopes(100_000);
    if phase == "after"
        && let Some(session) = &session
    {
        session.stop();
        let _ = session.wait(Duration::from_secs(10));
    }
    let mut least = f64::INFINITY;
    for _ in 0..BATCHES {
        let began = Instant::now();
        work::scopes(BATCH);
        least = least.min(began.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    println!("{least}");
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, recording, after] =
            [&self.before, &self.recording, &self.after].map(|phase| median(phase));
        writeln!(
            f,
            "a call, minimum of {BATCHES} batches, median of {} processes",
            self.before.len()
        )?;
        writeln!(f, "  before any session  {before:8.2} ns")?;
        writeln!(
            f,
            "  during a session    {recording:8.2} ns   (its window is full)"
        )?;
        writeln!(
            f,
            "  after the session   {after:8.2} ns   x {:.3} of before",
            after / before
        )
    }
}
