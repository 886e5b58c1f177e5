//! Shared parts of the tests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use profiler_runtime::{Row, summary};

/// Whether calls are measured in this build and process: not where profiling is stripped or off.
#[must_use]
pub fn measuring() -> bool {
    profiler_runtime::is_enabled()
}

/// What a count is where calls are measured; else zero.
#[must_use]
pub fn if_measuring(count: u64) -> u64 {
    if measuring() { count } else { 0 }
}

/// The row of a name, empty where it was not called or nothing is measured.
#[must_use]
pub fn row(name: &str) -> Row {
    summary().row(name).cloned().unwrap_or_default()
}

/// The rows whose names end in `suffix`.
#[must_use]
pub fn rows_ending_in(suffix: &str) -> Vec<Row> {
    summary()
        .rows
        .into_iter()
        .filter(|row| row.name.ends_with(suffix))
        .collect()
}

/// Tests that turn what the whole process shares run one after the other.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Works on the processor for at least this many microseconds.
pub fn work(microseconds: u64) {
    let start = std::time::Instant::now();
    while start.elapsed().as_micros() < microseconds.into() {
        std::hint::black_box(0);
    }
}
