//! Shared parts of the tests.
//!
//! Each folder of `tests/` is one test program, whose files Cargo and `automod` discover. Each test runs in a process
//! of its own: see [`isolated`].
#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "only tests use it: names say enough, and a panic is a failed test"
)]

pub mod allocator;
pub mod cells;
pub mod child;
pub mod compiler;
pub mod counts;
pub mod event_files;
pub mod full_disk;
pub mod gpu;
pub mod isolated;
pub mod kept;
pub mod nvtx;
pub mod poll;
pub mod traces;

use std::time::Duration;

use profiler_runtime::report::{Row, Times};
use profiler_runtime::{Profile, summary};

/// Returns whether calls must be measured in this mode: not if profiling is compiled out, or `PROFILER_ENABLED` is 0.
///
/// A test that switches measuring itself calls this while the switch is as at the start.
///
/// # Panics
///
/// Panics if the profiler does not agree: a test that returns where nothing is measured would otherwise pass.
#[must_use]
#[track_caller]
pub fn measuring() -> bool {
    let is_off = std::env::var_os("PROFILER_ENABLED").is_some_and(|value| value == "0");
    let must_measure = !is_off && !cfg!(feature = "strip");
    assert_eq!(
        profiler_runtime::is_enabled(),
        must_measure,
        "the profiler is not as this mode requires"
    );
    must_measure
}

/// Returns `count` where calls are measured, else zero.
#[must_use]
#[track_caller]
pub fn if_measuring(count: u64) -> u64 {
    if measuring() { count } else { 0 }
}

/// Returns what a program wrote to standard error, without the line that names the files that variables asked for.
#[must_use]
pub fn without_names_of_files(stderr: &str) -> String {
    let lines = stderr.split_inclusive('\n');
    lines
        .filter(|line| !line.starts_with("profiler: wrote "))
        .collect()
}

/// Ends a session, and waits until its windows are there.
#[track_caller]
pub fn stop(profile: &Profile) {
    profile.stop();
    assert!(
        profile.wait(Duration::from_secs(60)),
        "the windows are there"
    );
}

/// Returns the row of a name, empty where it was not called or nothing is measured.
#[must_use]
pub fn row(name: &str) -> Row {
    summary().row(name).cloned().unwrap_or_default()
}

/// The CPU times of a row, all zero if it has none: nothing is measured, or no call has finished.
pub trait CpuTimes {
    /// Returns the times.
    fn cpu(&self) -> Times;
}

impl CpuTimes for Row {
    fn cpu(&self) -> Times {
        self.cpu.unwrap_or_default()
    }
}

/// Returns the rows whose names end in `suffix`.
#[must_use]
pub fn rows_ending_in(suffix: &str) -> Vec<Row> {
    summary()
        .rows
        .into_iter()
        .filter(|row| row.name.ends_with(suffix))
        .collect()
}

/// Keeps the processor busy for at least this many microseconds.
pub fn work(microseconds: u64) {
    let start = std::time::Instant::now();
    while start.elapsed().as_micros() < microseconds.into() {
        std::hint::black_box(0);
    }
}
