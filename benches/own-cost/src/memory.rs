//! The memory that calls leave behind: none, after the first call of each name.

use std::fmt;
use std::time::Duration;

use bench_harness::Table;
use bench_harness::memory::{heap, resident};
use profiler_runtime::flush;
use serde::Serialize;

use crate::variants::{ON, Subject};

const MILLION: u64 = 1_000_000;
/// Long enough that one byte per call would show in the resident memory, which is counted in pages.
const LONG: u64 = 50 * MILLION;

#[derive(Serialize)]
pub(crate) struct Report {
    rows: Vec<Row>,
    long_run_calls: u64,
    /// The growth of the resident memory during the long run, in bytes.
    long_run_resident_bytes: Option<i64>,
}

/// The memory that one million calls left behind.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    allocations: u64,
    bytes_kept: i64,
}

impl Report {
    pub(crate) fn measure(subjects: &[Subject]) -> Self {
        let profiled = subjects.iter().filter(|subject| subject.profiled);
        Self {
            rows: profiled.map(a_million).collect(),
            long_run_calls: LONG,
            long_run_resident_bytes: long_run(subjects),
        }
    }
}

/// The first of two million calls warms up, until the collector's buffers have reached their sizes.
fn a_million(subject: &Subject) -> Row {
    call(subject, MILLION);
    arrive();
    let before = heap();
    call(subject, MILLION);
    let allocations = heap().since(before).allocations;
    arrive();
    Row {
        name: subject.variant.name,
        allocations,
        bytes_kept: heap().since(before).bytes,
    }
}

/// Makes this many measured calls, in batches of the variant's size.
fn call(subject: &Subject, calls: u64) {
    let variant = &subject.variant;
    let batch = variant.batch.unwrap_or(calls);
    for _ in 0..calls / batch {
        (variant.before)();
        (variant.run)(batch);
        (variant.after)();
    }
}

/// Waits until all log entries have reached their logger.
fn arrive() {
    flush(Duration::from_secs(5));
}

fn long_run(subjects: &[Subject]) -> Option<i64> {
    let plain = subjects.iter().find(|subject| subject.variant.name == ON)?;
    call(plain, MILLION);
    let before = resident()?;
    call(plain, LONG);
    Some(resident()?.cast_signed() - before.cast_signed())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "what one million calls leave on the heap, over all threads"
        )?;
        let mut table = Table::new(&["variant", "allocations", "bytes kept"]);
        for row in &self.rows {
            table.row([
                row.name.to_owned(),
                row.allocations.to_string(),
                row.bytes_kept.to_string(),
            ]);
        }
        writeln!(f, "{table}")?;
        match self.long_run_resident_bytes {
            Some(bytes) => writeln!(
                f,
                "resident memory grew by {} KiB over {} million calls",
                bytes / 1024,
                self.long_run_calls / MILLION
            ),
            None => writeln!(f, "resident memory: /proc of this system does not show it"),
        }
    }
}
