//! Comparing runs of two versions of a program.
//!
//! The unit is the run, not the call: the thousands of calls of one run share its luck. Each function is judged by its own
//! time for one call, so that its callers do not change with it.

mod common;
mod comparable;
mod judged;
mod metric;
mod power;
mod row;
mod run;
mod statistics;
mod tested;
mod verdict;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::metric::Metric;
pub(crate) use self::power::MOST_RUNS;
pub(crate) use self::row::{Basis, Change, Finding, Movement, Power, Row};
use self::run::Figures;
pub(crate) use self::run::Run;
pub(crate) use self::statistics::median;
pub(crate) use self::verdict::Verdict;
use comparable::Obstacles;
use judged::{Judged, Measured, judge_all};

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

impl Options {
    pub(crate) const DEFAULT: Self = Self {
        elapsed: false,
        p95: false,
        min_share: 0.005,
    };
}

/// The comparison of two sides.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) base_runs: usize,
    pub(crate) new_runs: usize,
    /// `true` if the sides took turns, so that a change of the machine affects both alike.
    pub(crate) in_turns: bool,
    /// What most functions have in common, for each clock that has enough of them.
    pub(crate) overall: Vec<Movement>,
    /// Figures of functions, the largest changes first.
    pub(crate) rows: Vec<Row>,
    /// Functions that only one side called.
    pub(crate) only_base: Vec<String>,
    pub(crate) only_new: Vec<String>,
    /// Functions that were not judged because they take too little time.
    pub(crate) small: usize,
    /// How many runs it takes, for each clock; nothing if there are too few to tell.
    pub(crate) power: Vec<Power>,
    /// Remarks on the comparison as a whole.
    pub(crate) notes: Vec<String>,
}

impl Comparison {
    /// Compares runs.
    pub(crate) fn of(base: &[Run], new: &[Run], options: Options) -> Self {
        let runs: Vec<&Run> = base.iter().chain(new).collect();
        let obstacles = comparable::obstacles(&runs);
        let in_turns = comparable::are_interleaved(base, new);
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
        let Judged {
            movements,
            rows,
            power,
        } = judge_all(&measured, base.len(), in_turns);
        let mut comparison = Self {
            base_runs: base.len(),
            new_runs: new.len(),
            in_turns,
            overall: movements,
            rows,
            only_base: missing(new),
            only_new: missing(base),
            small,
            power,
            notes: Vec::new(),
        };
        if is_by_thread(base, new, options) {
            comparison.notes.extend(comparison.elapsed_note());
        }
        comparison.apply(&obstacles);
        comparison.take_notes(&obstacles);
        comparison
    }

    /// Returns `true` if there are enough runs for verdicts.
    pub(crate) fn has_verdicts(&self) -> bool {
        self.base_runs.min(self.new_runs) >= FEWEST_RUNS
    }

    /// Returns how many figures of functions have this verdict.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        let rows = self.rows.iter();
        rows.filter(|row| row.finding.verdict == verdict).count()
    }

    /// Returns `true` if a figure has this verdict, or what most functions have in common.
    pub(crate) fn has(&self, verdict: Verdict) -> bool {
        let mut findings = self.overall.iter().map(|movement| movement.finding);
        self.count(verdict) > 0 || findings.any(|finding| finding.verdict == verdict)
    }

    /// Withdraws the verdicts of figures that cannot be compared.
    fn apply(&mut self, obstacles: &Obstacles) {
        let obstacle = |metric: Metric| {
            let obstacle = if metric.is_cuda() {
                &obstacles.cuda
            } else {
                &obstacles.cpu
            };
            obstacle.is_some()
        };
        let movements = self.overall.iter_mut();
        let movements = movements.map(|movement| (movement.metric, &mut movement.finding));
        let rows = self.rows.iter_mut();
        let rows = rows.map(|row| (row.metric, &mut row.finding));
        for (_, finding) in movements
            .chain(rows)
            .filter(|(metric, _)| obstacle(*metric))
        {
            finding.verdict = Verdict::NotComparable;
            finding.runs_needed = None;
            finding.turns_needed = false;
        }
        self.power.retain(|power| !obstacle(power.metric));
    }

    fn take_notes(&mut self, obstacles: &Obstacles) {
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
        } else if !self.in_turns {
            self.notes.push(
                "the sides did not run in turns: a change of the machine cannot be told from one of the program; `profiler run \
                 --vs` lets them take turns"
                    .to_owned(),
            );
        }
        let movements = self.overall.iter();
        let notes: Vec<String> = movements
            .filter_map(|common| self.common_note(common))
            .collect();
        self.notes.extend(notes);
        self.notes.extend(self.power_note());
        let changed = self.rows.iter().filter(|row| !row.same_calls());
        let names: BTreeSet<&str> = changed.map(|row| row.name.as_str()).collect();
        if !names.is_empty() {
            self.notes.push(format!(
                "{} called another number of times: figures are for one call, so look at both",
                count(names.len(), "function")
            ));
        }
    }

    /// Says which functions are judged by their elapsed times although there are thread times.
    fn elapsed_note(&self) -> Option<String> {
        let by_elapsed = self.rows.iter().filter(|row| row.metric == Metric::Elapsed);
        let functions = by_elapsed.count();
        (functions > 0).then(|| {
            format!(
                "{} judged by elapsed time (CPU): a call takes less time than reading its thread's clock",
                count(functions, "function")
            )
        })
    }

    /// Says which change of the functions counts, given what most of them have in common.
    fn common_note(&self, common: &Movement) -> Option<String> {
        let is_chance = common.is_chance();
        let moved = if is_chance {
            let estimate = percent(common.change.estimate);
            format!("what most functions have in common ({estimate}) is within chance")
        } else {
            format!("most functions got {} together", common.moved())
        };
        let both = "a verdict is given where both changes have it";
        let note = match common.basis {
            _ if common.finding.verdict == Verdict::NotComparable => return None,
            _ if !self.has_verdicts() => {
                "the changes against the others leave out what most functions have in common"
                    .to_owned()
            }
            Basis::Change => format!("{moved}: each is judged by its own change"),
            Basis::AgainstOthers => {
                format!("{moved}: each is judged by the change that varies less")
            }
            Basis::Both if self.in_turns => format!("{moved}, perhaps by chance: {both}"),
            Basis::Both if is_chance => format!("{moved}: without turns, {both}"),
            Basis::Both => format!("{moved}, by the machine or the program: {both}"),
        };
        let clock = match self.overall.len() {
            1 => String::new(),
            _ => format!("{}: ", common.metric),
        };
        Some(format!("{clock}{note}"))
    }

    /// Says how many runs it takes to find a change.
    fn power_note(&self) -> Option<String> {
        let clocks: Vec<String> = self
            .power
            .iter()
            .map(|power| {
                let runs = match power.runs {
                    Some(runs) => format!("about {runs}"),
                    None => format!("more than {MOST_RUNS}"),
                };
                let noise = 100.0 * power.noise;
                format!("{runs} runs a side ({}, {noise:.1} % noise)", power.metric)
            })
            .collect();
        (!clocks.is_empty()).then(|| {
            format!(
                "to find a change of {:.0} % in 9 of 10 cases takes {}",
                100.0 * Power::CHANGE,
                clocks.join(", ")
            )
        })
    }
}

/// Formats a fraction as a percentage with its sign.
pub(crate) fn percent(fraction: f64) -> String {
    let percent = 100.0 * fraction;
    let digits = usize::from(percent.abs() < 99.95);
    // Not “-0.0”.
    let percent = if percent.abs() < 0.05 { 0.0 } else { percent };
    format!("{percent:+.digits$} %")
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
    let by_thread = is_by_thread(base, new, options);
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
        let by_thread = by_thread && !is_mostly_thread_clock(base, new, name);
        for metric in metrics(by_thread, options) {
            let found = Measured::of(base, new, name, metric);
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

/// Returns `true` if thread times replace the elapsed times: all runs have them.
fn is_by_thread(base: &[Run], new: &[Run], options: Options) -> bool {
    let has_thread_times = |run: &Run| {
        let mut functions = run.functions.values();
        functions.any(|function| function.per_call.contains_key(&Metric::Thread))
    };
    !options.elapsed && base.iter().chain(new).all(has_thread_times)
}

/// Returns `true` if reading the thread's clock took longer than a call of the function in any run, so that its elapsed time,
/// which is without that, says more.
fn is_mostly_thread_clock(base: &[Run], new: &[Run], name: &str) -> bool {
    let mut figures = base
        .iter()
        .chain(new)
        .filter_map(|run| run.functions.get(name));
    figures.any(Figures::is_mostly_thread_clock)
}

/// Returns the metrics of a function that are compared.
fn metrics(by_thread: bool, options: Options) -> impl Iterator<Item = Metric> {
    let is_compared = move |metric: &Metric| match metric {
        Metric::Thread => by_thread,
        Metric::Elapsed => !by_thread,
        metric => options.p95 || !metric.is_percentile(),
    };
    Metric::ALL.into_iter().filter(is_compared)
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
