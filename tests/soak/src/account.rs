//! Counts what the program does, and compares the counts with the profiler's.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use profiler_runtime::{FlushReport, Summary, Trace, flush, summary};

/// Longer than it takes to read and log everything in flight.
const PATIENCE: Duration = Duration::from_secs(120);

/// The measured names, in the order of [`Account::calls`].
pub(crate) const NAMES: [&str; 9] = [
    "plain",
    "inner",
    "recursive",
    "panics",
    "logged",
    "on the device",
    "future",
    "dropped",
    "out of order",
];

/// Returns the index of a name in [`NAMES`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    Plain,
    Inner,
    Recursive,
    Panics,
    Logged,
    OnTheDevice,
    Future,
    Dropped,
    OutOfOrder,
}

/// The number of names that are built at run time: `dynamic 0` and so on.
pub(crate) const DYNAMIC_NAMES: u64 = 50;

/// The counts of the program.
#[derive(Debug, Default)]
pub(crate) struct Account {
    calls: [AtomicU64; NAMES.len()],
    dynamic: AtomicU64,
    /// The entries that the logger received.
    logged: Arc<AtomicU64>,
    /// The scopes in windows, and those that windows report as missing.
    in_windows: AtomicU64,
    missing: AtomicU64,
    /// The scopes that ended during a session.
    recorded: AtomicU64,
}

impl Account {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn add(&self, name: Name, calls: u64) {
        self.calls[name as usize].fetch_add(calls, Relaxed);
    }

    pub(crate) fn add_dynamic(&self, calls: u64) {
        self.dynamic.fetch_add(calls, Relaxed);
    }

    /// Returns a logger that counts the entries it receives.
    #[cfg_attr(
        feature = "strip",
        allow(dead_code, reason = "only an attribute mentions it")
    )]
    pub(crate) fn logger(&self) -> impl Fn(&str, f64, u64) + Send + Sync + 'static {
        let logged = Arc::clone(&self.logged);
        move |_, _, _| {
            logged.fetch_add(1, Relaxed);
        }
    }

    /// Returns the number of all calls so far.
    pub(crate) fn total(&self) -> u64 {
        let named: u64 = self.calls.iter().map(|calls| calls.load(Relaxed)).sum();
        named + self.dynamic.load(Relaxed)
    }

    /// Counts the scopes of a session that has ended, during which this many calls were made.
    pub(crate) fn add_window(&self, trace: &Trace) {
        let truncation = trace.truncation();
        let missing = truncation.over_capacity
            + truncation.ring_full
            + truncation.handler_behind
            + truncation.late;
        self.in_windows.fetch_add(trace.len() as u64, Relaxed);
        self.missing.fetch_add(missing, Relaxed);
    }

    pub(crate) fn add_recorded(&self, calls: u64) {
        self.recorded.fetch_add(calls, Relaxed);
    }

    fn calls(&self, name: Name) -> u64 {
        self.calls[name as usize].load(Relaxed)
    }

    /// Compares all counts with the profiler's. The error has a line for each that differs.
    pub(crate) fn compare(&self, rounds: u64) -> Result<(), String> {
        let flushed = flush(PATIENCE);
        let summary = summary();
        let mut wrong = Differences::default();
        for (name, calls) in NAMES.iter().zip(&self.calls) {
            let row = summary.row(name).cloned().unwrap_or_default();
            wrong.unless_equal(format!("calls of {name}"), row.calls, calls.load(Relaxed));
            wrong.unless_equal(format!("open scopes of {name}"), row.open, 0);
        }
        let ended = |name: Name| {
            summary
                .row(NAMES[name as usize])
                .cloned()
                .unwrap_or_default()
        };
        wrong.unless_equal(
            "panics",
            ended(Name::Panics).panicked,
            self.calls(Name::Panics),
        );
        let dropped = ended(Name::Dropped).dropped_futures;
        wrong.unless_equal("dropped futures", dropped, self.calls(Name::Dropped));
        self.compare_dynamic(&summary, &mut wrong);
        self.compare_gpu(&summary, flushed, &mut wrong);
        self.compare_log(flushed, &mut wrong);
        wrong.unless_equal(
            "scopes in windows and missing from them",
            self.in_windows.load(Relaxed) + self.missing.load(Relaxed),
            self.recorded.load(Relaxed),
        );
        // The counts of a program that logs nothing would also be equal.
        if rounds == 0 || self.calls.iter().any(|calls| calls.load(Relaxed) == 0) {
            wrong.0.push("a kind of operation was never run".to_owned());
        }
        wrong.into_result()
    }

    fn compare_dynamic(&self, summary: &Summary, wrong: &mut Differences) {
        let calls: u64 = summary
            .rows
            .iter()
            .filter(|row| row.name.starts_with("dynamic "))
            .map(|row| row.calls)
            .sum();
        wrong.unless_equal("calls of dynamic names", calls, self.dynamic.load(Relaxed));
    }

    fn compare_gpu(&self, summary: &Summary, flushed: FlushReport, wrong: &mut Differences) {
        wrong.unless_equal("GPU times not read", flushed.unread, 0);
        let row = summary.row(NAMES[Name::OnTheDevice as usize]);
        let timed = row
            .and_then(|row| row.cuda.as_ref())
            .map_or(0, |cuda| cuda.calls);
        let lost = row.map_or(0, |row| row.without_cuda);
        let calls = self.calls(Name::OnTheDevice);
        wrong.unless_equal("GPU times and calls without one", timed + lost, calls);
        let reasons: u64 = summary.cuda.lost.iter().map(|(_, count)| count).sum();
        let rows: u64 = summary.rows.iter().map(|row| row.without_cuda).sum();
        wrong.unless_equal("lost GPU times by reason, and by name", reasons, rows);
    }

    fn compare_log(&self, flushed: FlushReport, wrong: &mut Differences) {
        wrong.unless_equal("log entries left", flushed.left, 0);
        let logged = self.logged.load(Relaxed);
        wrong.unless_equal("log entries delivered", flushed.delivered, logged);
        wrong.unless_equal(
            "log entries delivered and dropped",
            flushed.delivered + flushed.dropped,
            self.calls(Name::Logged),
        );
    }
}

impl Display for Account {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} calls, {} logged, {} in windows and {} counted as missing",
            self.total(),
            self.logged.load(Relaxed),
            self.in_windows.load(Relaxed),
            self.missing.load(Relaxed)
        )
    }
}

/// Formats the counts that differ.
#[derive(Debug, Default)]
struct Differences(Vec<String>);

impl Differences {
    fn unless_equal(&mut self, what: impl Into<String>, profiler: u64, program: u64) {
        if profiler != program {
            let what = what.into();
            self.0.push(format!(
                "{what}: {profiler} by the profiler, {program} by the program"
            ));
        }
    }

    fn into_result(self) -> Result<(), String> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(format!("the counts differ:\n  {}", self.0.join("\n  ")))
    }
}
