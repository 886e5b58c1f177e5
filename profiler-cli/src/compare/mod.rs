//! Comparing runs of two versions of a program.
//!
//! The unit is the run, not the call: the thousands of calls of one run share its luck. Each function is judged by its own
//! time for one call, so that its callers do not change with it.

mod common;
mod comparable;
mod judged;
mod metric;
mod run;
mod statistics;
mod verdict;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::metric::Metric;
pub(crate) use self::run::Run;
pub(crate) use self::statistics::median;
pub(crate) use self::verdict::Verdict;
use comparable::Obstacles;
use judged::{Measured, judge_all};

/// With fewer runs a side there is no verdict: the smallest p-value of four is 3 %, which no correction for several
/// functions leaves significant.
pub(crate) const FEWEST_RUNS: usize = 5;

/// The choices of the user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Elapsed times, also if there are thread times.
    pub(crate) elapsed: bool,
    /// The 95th percentiles too, of functions without measured children.
    pub(crate) p95: bool,
    /// Functions with a smaller share of the time are not judged.
    pub(crate) min_share: f64,
}

/// The comparison of two sides.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) base_runs: usize,
    pub(crate) new_runs: usize,
    /// The common movement of all functions, for each clock that has enough of them.
    pub(crate) overall: Vec<Row>,
    /// Figures of functions, the largest changes first.
    pub(crate) rows: Vec<Row>,
    /// Functions that only one side called.
    pub(crate) only_base: Vec<String>,
    pub(crate) only_new: Vec<String>,
    /// Functions that were not judged because they take too little time.
    pub(crate) small: usize,
    /// Remarks on the comparison as a whole.
    pub(crate) notes: Vec<String>,
}

/// One figure of a function on both sides.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) metric: Metric,
    /// The medians of the runs.
    pub(crate) base: f64,
    pub(crate) new: f64,
    /// The median number of calls in a run.
    pub(crate) base_calls: f64,
    pub(crate) new_calls: f64,
    pub(crate) change: Change,
    pub(crate) verdict: Verdict,
    /// How many runs a side would give a verdict; `None` if there is one, or if a hundred would not.
    pub(crate) runs_needed: Option<usize>,
}

/// How a figure changed: fractions, such as 0.1 for a tenth more.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct Change {
    pub(crate) estimate: f64,
    /// The interval; with fewer than four runs a side, it is the range.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Smaller changes are not reported.
    pub(crate) threshold: f64,
    /// The p-value, before the correction for the number of functions.
    pub(crate) p: f64,
}

impl Comparison {
    /// Compares runs.
    pub(crate) fn of(base: &[Run], new: &[Run], options: Options) -> Self {
        let runs: Vec<&Run> = base.iter().chain(new).collect();
        let obstacles = comparable::obstacles(&runs);
        let is_interleaved = comparable::are_interleaved(base, new);
        let names: BTreeSet<&str> = runs
            .iter()
            .flat_map(|run| run.functions.keys().map(String::as_str))
            .collect();
        let is_in =
            |side: &[Run], name: &str| side.iter().any(|run| run.functions.contains_key(name));
        let missing = |side: &[Run]| -> Vec<String> {
            let missing = names.iter().filter(|name| !is_in(side, name));
            missing.map(|name| (*name).to_owned()).collect()
        };
        let (measured, small) = collect(base, new, &names, options);
        let (overall, rows) = judge_all(&measured, base.len(), is_interleaved);
        let mut comparison = Self {
            base_runs: base.len(),
            new_runs: new.len(),
            overall,
            rows,
            only_base: missing(new),
            only_new: missing(base),
            small,
            notes: Vec::new(),
        };
        comparison.apply(&obstacles);
        comparison.take_notes(&obstacles, is_interleaved);
        comparison
    }

    /// Returns `true` if there are enough runs for verdicts.
    pub(crate) fn has_verdicts(&self) -> bool {
        self.base_runs.min(self.new_runs) >= FEWEST_RUNS
    }

    /// Returns how many figures have this verdict.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        let all = self.overall.iter().chain(&self.rows);
        all.filter(|row| row.verdict == verdict).count()
    }

    /// Withdraws the verdicts of figures that cannot be compared.
    fn apply(&mut self, obstacles: &Obstacles) {
        for row in self.overall.iter_mut().chain(&mut self.rows) {
            let obstacle = if row.metric.is_cuda() {
                &obstacles.cuda
            } else {
                &obstacles.cpu
            };
            if obstacle.is_some() {
                row.verdict = Verdict::NotComparable;
                row.runs_needed = None;
            }
        }
    }

    fn take_notes(&mut self, obstacles: &Obstacles, is_interleaved: bool) {
        match (&obstacles.cpu, &obstacles.cuda) {
            (Some(reason), _) => self.notes.push(format!("not comparable: {reason}")),
            (None, Some(reason)) => {
                self.notes
                    .push(format!("not comparable on the GPU: {reason}"));
            }
            (None, None) => {}
        }
        self.notes.extend(obstacles.warning.clone());
        if !self.has_verdicts() {
            self.notes.push(format!(
                "no verdicts: {} and {} runs, and {FEWEST_RUNS} on each side are needed",
                self.base_runs, self.new_runs
            ));
        } else if !is_interleaved {
            self.notes.push(
                "the two sides did not run in turns, so a change of the machine between them is part of the differences: \
                 `profiler run --vs` lets them take turns"
                    .to_owned(),
            );
        }
        let changed = self.rows.iter().filter(|row| !row.same_calls());
        let names: BTreeSet<&str> = changed.map(|row| row.name.as_str()).collect();
        if !names.is_empty() {
            self.notes.push(format!(
                "{} called another number of times: figures are for one call, so look at both",
                count(names.len(), "function")
            ));
        }
    }
}

impl Row {
    /// Returns `true` if both sides called the function equally often, to a percent.
    pub(crate) fn same_calls(&self) -> bool {
        (self.new_calls - self.base_calls).abs() <= 0.01 * self.base_calls.max(self.new_calls)
    }
}

/// Returns a number with its noun.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Collects the figures that are judged, and counts the functions that are left out because they take too little time.
fn collect(
    base: &[Run],
    new: &[Run],
    names: &BTreeSet<&str>,
    options: Options,
) -> (Vec<Measured>, usize) {
    let metrics = metrics(base, new, options);
    let totals = [false, true].map(|is_cuda| {
        let shares: BTreeMap<&str, f64> = names
            .iter()
            .map(|name| (*name, total(base, new, name, is_cuda)))
            .collect();
        let all: f64 = shares.values().sum();
        (shares, all)
    });
    let is_large = |name: &str, is_cuda: bool| {
        let (shares, all) = &totals[usize::from(is_cuda)];
        // The runs of both sides together decide, so that the choice favours neither.
        shares
            .get(name)
            .is_some_and(|share| *share >= options.min_share * all)
    };
    let mut measured = Vec::new();
    let mut small = BTreeSet::new();
    for name in names {
        for metric in &metrics {
            let found = Measured::of(base, new, name, *metric);
            if found.is_some() && !is_large(name, metric.is_cuda()) {
                small.insert(*name);
            } else {
                measured.extend(found);
            }
        }
    }
    for row in &measured {
        small.remove(row.name.as_str());
    }
    (measured, small.len())
}

/// Returns the metrics that are compared. A thread time replaces the elapsed time if all runs have thread times.
fn metrics(base: &[Run], new: &[Run], options: Options) -> Vec<Metric> {
    let has_thread_times = |run: &Run| {
        let mut functions = run.functions.values();
        functions.any(|function| function.per_call.contains_key(&Metric::Thread))
    };
    let by_thread = !options.elapsed && base.iter().chain(new).all(has_thread_times);
    let is_compared = |metric: &Metric| match metric {
        Metric::Thread => by_thread,
        Metric::Elapsed => !by_thread,
        metric => options.p95 || !metric.is_percentile(),
    };
    Metric::ALL.into_iter().filter(is_compared).collect()
}

/// Returns a function's own time on one clock, over all runs.
fn total(base: &[Run], new: &[Run], name: &str, is_cuda: bool) -> f64 {
    let metric = if is_cuda {
        Metric::Cuda
    } else {
        Metric::Elapsed
    };
    let runs = base.iter().chain(new);
    let figures = runs.filter_map(|run| run.functions.get(name));
    figures
        .map(|figures| figures.per_call.get(&metric).unwrap_or(&0.0) * figures.calls)
        .sum()
}
