//! One limit of a budget.

use std::collections::BTreeMap;

use profiler_host::diagnostics::{did_you_mean, similar};
use profiler_report::{Row, Times};

use crate::compare::Metric;

/// The largest value that a figure of a function may have.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    pub(super) name: String,
    pub(super) figure: Figure,
    /// In nanoseconds, or a number of calls.
    pub(super) most: f64,
    /// The limit as the user wrote it.
    pub(super) text: String,
    pub(super) line: usize,
}

/// A figure that can be limited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    /// `None` for the number of calls.
    clock: Option<Clock>,
    key: &'static str,
    of: fn(&Times) -> f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Cpu,
    Cuda,
}

const fn figure(clock: Option<Clock>, key: &'static str, of: fn(&Times) -> f64) -> Figure {
    Figure { clock, key, of }
}

/// All figures that can be limited.
pub(super) const FIGURES: [Figure; 15] = [
    figure(None, "calls", |_| 0.0),
    figure(Some(Clock::Cpu), "cpu_mean", |times| times.mean_ns),
    figure(Some(Clock::Cpu), "cpu_self", own),
    figure(Some(Clock::Cpu), "cpu_p50", |times| times.p50_ns),
    figure(Some(Clock::Cpu), "cpu_p95", |times| times.p95_ns),
    figure(Some(Clock::Cpu), "cpu_p99", |times| times.p99_ns),
    figure(Some(Clock::Cpu), "cpu_max", |times| times.max_ns),
    figure(Some(Clock::Cpu), "cpu_total", |times| times.total_ns),
    figure(Some(Clock::Cuda), "cuda_mean", |times| times.mean_ns),
    figure(Some(Clock::Cuda), "cuda_self", own),
    figure(Some(Clock::Cuda), "cuda_p50", |times| times.p50_ns),
    figure(Some(Clock::Cuda), "cuda_p95", |times| times.p95_ns),
    figure(Some(Clock::Cuda), "cuda_p99", |times| times.p99_ns),
    figure(Some(Clock::Cuda), "cuda_max", |times| times.max_ns),
    figure(Some(Clock::Cuda), "cuda_total", |times| times.total_ns),
];

/// Returns a function's own time for one call.
fn own(times: &Times) -> f64 {
    times.self_ns / times.calls.max(1) as f64
}

impl Figure {
    pub(super) fn from_key(key: &str) -> Option<Self> {
        FIGURES.into_iter().find(|figure| figure.key == key)
    }

    pub(super) const fn key(self) -> &'static str {
        self.key
    }

    /// Returns `true` for the number of calls.
    pub(super) const fn is_count(self) -> bool {
        self.clock.is_none()
    }

    /// Returns the figure of a row; `None` if it has no such times.
    pub(super) fn of(self, row: &Row) -> Option<f64> {
        let times = match self.clock {
            None => return Some(row.calls as f64),
            Some(Clock::Cpu) => row.cpu.as_ref(),
            Some(Clock::Cuda) => row.cuda.as_ref(),
        };
        times.map(self.of)
    }
}

impl Limit {
    /// Returns the line for a figure above the limit.
    pub(super) fn excess(&self, figure: f64) -> Option<String> {
        if figure <= self.most {
            return None;
        }
        let shown = if self.figure.is_count() {
            format!("{figure:.0}")
        } else {
            Metric::Elapsed.format(figure)
        };
        Some(format!(
            "over budget: {} of {} is {shown}, and its limit is {}",
            self.figure.key(),
            self.name,
            self.text
        ))
    }

    /// Returns the line for a figure that no run has.
    pub(super) fn missing(&self, runs: &[BTreeMap<String, Row>]) -> String {
        let (line, key, name) = (self.line, self.figure.key(), &self.name);
        if runs.iter().any(|run| run.contains_key(name)) {
            return format!("budget, line {line}: {name} has no {key}, since it has no such times");
        }
        let names = runs.iter().flat_map(|run| run.keys().map(String::as_str));
        let hint = did_you_mean(&similar(name, names));
        format!("budget, line {line}: {name} was not called in any run{hint}")
    }
}
