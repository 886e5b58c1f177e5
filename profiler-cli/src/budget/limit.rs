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
    of: Of,
}

/// How a figure follows from the times of a row.
#[derive(Clone, Copy, Debug)]
enum Of {
    /// It is one of single calls, which rows with times that were only reported do not have.
    Single(fn(&Times) -> f64),
    /// It is the self time for each call.
    Own,
    Total,
    Calls,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Cpu,
    Cuda,
}

const fn figure(clock: Option<Clock>, key: &'static str, of: Of) -> Figure {
    Figure { clock, key, of }
}

/// All figures that can be limited.
pub(super) const FIGURES: [Figure; 15] = [
    figure(None, "calls", Of::Calls),
    figure(
        Some(Clock::Cpu),
        "cpu_mean",
        Of::Single(|times| times.mean_ns),
    ),
    figure(Some(Clock::Cpu), "cpu_self", Of::Own),
    figure(
        Some(Clock::Cpu),
        "cpu_p50",
        Of::Single(|times| times.p50_ns),
    ),
    figure(
        Some(Clock::Cpu),
        "cpu_p95",
        Of::Single(|times| times.p95_ns),
    ),
    figure(
        Some(Clock::Cpu),
        "cpu_p99",
        Of::Single(|times| times.p99_ns),
    ),
    figure(
        Some(Clock::Cpu),
        "cpu_max",
        Of::Single(|times| times.max_ns),
    ),
    figure(Some(Clock::Cpu), "cpu_total", Of::Total),
    figure(
        Some(Clock::Cuda),
        "cuda_mean",
        Of::Single(|times| times.mean_ns),
    ),
    figure(Some(Clock::Cuda), "cuda_self", Of::Own),
    figure(
        Some(Clock::Cuda),
        "cuda_p50",
        Of::Single(|times| times.p50_ns),
    ),
    figure(
        Some(Clock::Cuda),
        "cuda_p95",
        Of::Single(|times| times.p95_ns),
    ),
    figure(
        Some(Clock::Cuda),
        "cuda_p99",
        Of::Single(|times| times.p99_ns),
    ),
    figure(
        Some(Clock::Cuda),
        "cuda_max",
        Of::Single(|times| times.max_ns),
    ),
    figure(Some(Clock::Cuda), "cuda_total", Of::Total),
];

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
        let (times, calls) = match self.clock {
            None => return Some(row.calls as f64),
            Some(Clock::Cpu) => row.cpu.map(|cpu| (cpu, cpu.calls)),
            Some(Clock::Cuda) => row.cuda.map(|cuda| (cuda, row.cuda_calls())),
        }?;
        match self.of {
            Of::Single(of) => (times.calls > 0).then(|| of(&times)),
            Of::Own => (calls > 0).then(|| times.self_ns / calls as f64),
            Of::Total => Some(times.total_ns),
            Of::Calls => Some(calls as f64),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_were_only_reported_have_figures_of_all_calls_and_none_of_single_ones() {
        let mut cuda = Times::default();
        (cuda.total_ns, cuda.self_ns) = (80.0, 60.0);
        let mut row = Row::default();
        (row.calls, row.cuda) = (4, Some(cuda));
        let figure = |key| Figure::from_key(key).and_then(|figure| figure.of(&row));
        assert_eq!(
            (figure("cuda_self"), figure("cuda_total")),
            (Some(15.0), Some(80.0))
        );
        assert_eq!((figure("cuda_mean"), figure("cuda_p95")), (None, None));
        assert_eq!((figure("calls"), figure("cpu_self")), (Some(4.0), None));
    }
}
