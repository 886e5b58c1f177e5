//! Judging all figures together: what they have in common, and how many there are, matters to each of them.

use std::f64::consts::PI;

use profiler_report::internal::InOrder as _;

use super::FEWEST_RUNS;
use super::common::movements;
use super::metric::Metric;
use super::row::{Basis, CHANCE, Finding, Movement, Power, Row};
use super::run::Run;
use super::statistics::{benjamini_hochberg, median};
use super::tested::Tested;
use super::verdict::{Verdict, judge};

/// The share of all reported differences that may be false.
const FALSE_DISCOVERIES: f64 = 0.05;
/// A common movement with a smaller p-value is no chance. In between it may be either.
const NO_CHANCE: f64 = 0.01;

/// A figure of a function in all runs.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) name: String,
    metric: Metric,
    base: Vec<f64>,
    new: Vec<f64>,
    base_calls: f64,
    new_calls: f64,
    /// The smallest fraction that is more than the clock's error.
    resolution: f64,
    /// `true` if every run has the figure.
    is_complete: bool,
}

impl Measured {
    /// Collects the figures of a function; `None` unless both sides have some, and they can be compared as ratios.
    pub(super) fn of(base: &[Run], new: &[Run], name: &str, metric: Metric) -> Option<Self> {
        let values = |runs: &[Run]| -> Vec<f64> {
            runs.iter()
                .filter_map(|run| run.figure(name, metric))
                .collect()
        };
        let calls = |runs: &[Run]| {
            let functions = runs.iter().filter_map(|run| run.functions.get(name));
            median(&functions.map(|figures| figures.calls).collect::<Vec<_>>())
        };
        let (base_values, new_values) = (values(base), values(new));
        let mut all = base_values.iter().chain(&new_values);
        if base_values.is_empty() || new_values.is_empty() || all.any(|value| !value.is_finite()) {
            return None;
        }
        let middle = median(&base_values).min(median(&new_values)).max(1.0);
        let mut resolution: f64 = 0.0;
        for run in base.iter().chain(new) {
            let Some(figures) = run.functions.get(name) else {
                continue;
            };
            resolution = resolution.max(figures.resolution(metric) / middle);
            if metric.is_percentile() {
                // Values in neighbouring buckets may be as close as those in one.
                resolution = resolution.max(2.0 * run.percentile_error);
            }
        }
        Some(Self {
            name: name.to_owned(),
            metric,
            is_complete: base_values.len() == base.len() && new_values.len() == new.len(),
            base: base_values,
            new: new_values,
            base_calls: calls(base),
            new_calls: calls(new),
            resolution,
        })
    }

    /// Returns the figures of the runs on the scale on which differences are ratios.
    fn logarithms(&self) -> (Vec<f64>, Vec<f64>) {
        let logarithms = |values: &[f64]| values.iter().copied().map(logarithm).collect();
        (logarithms(&self.base), logarithms(&self.new))
    }
}

/// Returns a figure on the scale on which differences are ratios. No time and no allocation at all are ordinary figures, of
/// which there is no ratio: they count as one unit.
fn logarithm(value: f64) -> f64 {
    value.max(1.0).ln()
}

/// All figures, judged together.
pub(super) struct Judged {
    /// What most functions have in common, for each clock that has enough of them.
    pub(super) movements: Vec<Movement>,
    /// The figures of the functions, the largest changes first.
    pub(super) rows: Vec<Row>,
    /// For each clock, how many runs it takes.
    pub(super) power: Vec<Power>,
}

/// Judges all figures. The first `base_runs` runs of a side that has all figures are those of the base.
pub(super) fn judge_all(measured: &[Measured], base_runs: usize, in_turns: bool) -> Judged {
    let mut movements = Vec::new();
    let mut candidates = Vec::new();
    for metric in Metric::ALL {
        let of_metric: Vec<&Measured> =
            measured.iter().filter(|row| row.metric == metric).collect();
        let common = common(&of_metric, base_runs);
        let split = common.as_ref().map(|movement| movement.split_at(base_runs));
        let movement = split.map(|(base, new)| Movement::of(metric, base, new, in_turns));
        let basis = movement
            .as_ref()
            .map_or(Basis::Change, |common| common.basis);
        let new = |row| Candidate::new(row, split, basis);
        candidates.extend(of_metric.into_iter().map(new));
        movements.extend(movement);
    }
    let p_values: Vec<f64> = candidates
        .iter()
        .filter(|candidate| candidate.has_verdict())
        .map(Candidate::p)
        .collect();
    // A difference that is alone is significant at this level.
    let level = FALSE_DISCOVERIES / p_values.len().max(1) as f64;
    let power = power(&candidates, level);
    let mut significant = benjamini_hochberg(&p_values, FALSE_DISCOVERIES).into_iter();
    let mut rows: Vec<(f64, Row)> = candidates
        .into_iter()
        .map(|candidate| {
            let is_significant = candidate.has_verdict() && significant.next().unwrap_or(false);
            let size = candidate.judged().shift.estimate.abs();
            (size, candidate.row(is_significant, level, in_turns))
        })
        .collect();
    rows.order_by(|(left_size, left), (right_size, right)| {
        let order = |row: &Row| row.finding.verdict.order();
        let by_size = right_size.total_cmp(left_size);
        order(left).cmp(&order(right)).then(by_size)
    });
    Judged {
        movements,
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        power,
    }
}

/// Returns the common movement of the functions that all runs have. Memory does not depend on the machine.
fn common(rows: &[&Measured], base_runs: usize) -> Option<Vec<f64>> {
    let complete = rows.iter().filter(|row| row.is_complete);
    let functions: Vec<Vec<f64>> = complete
        .filter(|row| row.metric.is_time() && row.base.len() == base_runs)
        .map(|row| {
            let (mut base, new) = row.logarithms();
            base.extend(new);
            base
        })
        .collect();
    movements(&functions)
}

impl Movement {
    /// Judges a common movement by itself: it decides how all functions are judged.
    fn of(metric: Metric, base: &[f64], new: &[f64], in_turns: bool) -> Self {
        let tested = Tested::new(base, new, 0.0);
        // Without turns, the machine may have changed by less than what is significant, too.
        let basis = match tested.p {
            _ if !in_turns => Basis::Both,
            p if p > CHANCE => Basis::AgainstOthers,
            p if p > NO_CHANCE => Basis::Both,
            _ => Basis::Change,
        };
        let verdict = judge(tested.shift, tested.limits, tested.p <= NO_CHANCE);
        let finding = if tested.runs < FEWEST_RUNS {
            Finding::none(&tested)
        } else if !in_turns && verdict.is_difference() {
            Finding::needs_turns(&tested)
        } else {
            Finding::of(verdict, &tested, NO_CHANCE)
        };
        Self {
            metric,
            change: tested.change(),
            basis,
            finding,
        }
    }
}

impl Finding {
    fn of(verdict: Verdict, tested: &Tested, level: f64) -> Self {
        let runs_needed = (verdict == Verdict::Unclear).then(|| runs_needed(tested, level));
        Self {
            verdict,
            margin: tested.limits.margin.exp_m1(),
            runs_needed: runs_needed.flatten(),
            turns_needed: false,
        }
    }

    fn none(tested: &Tested) -> Self {
        Self::of(Verdict::None, tested, 0.0)
    }

    fn needs_turns(tested: &Tested) -> Self {
        Self {
            verdict: Verdict::Unclear,
            margin: tested.limits.margin.exp_m1(),
            runs_needed: None,
            turns_needed: true,
        }
    }
}

/// Returns how many runs would give a verdict, if the estimate and the noise stay as they are.
fn runs_needed(tested: &Tested, level: f64) -> Option<usize> {
    let size = tested.shift.estimate.abs();
    let found = tested.noise.runs_to_find(size, level);
    let excluded = tested.noise.runs_to_exclude(size, tested.limits.margin);
    let needed = [found, excluded].into_iter().flatten().min();
    needed.map(|needed| needed.max(tested.runs + 1))
}

/// A figure before its verdict.
struct Candidate<'m> {
    measured: &'m Measured,
    change: Tested,
    against_others: Option<Tested>,
    basis: Basis,
}

impl<'m> Candidate<'m> {
    /// `movement` is that of the runs of both sides.
    fn new(measured: &'m Measured, movement: Option<(&[f64], &[f64])>, basis: Basis) -> Self {
        let (mut base, mut new) = measured.logarithms();
        // The change that is shown is that of the medians that are shown.
        let shown = logarithm(median(&measured.new)) - logarithm(median(&measured.base));
        let change = Tested::new(&base, &new, measured.resolution).with_estimate(shown);
        let movement = movement.filter(|_| measured.is_complete);
        let against_others = movement.map(|(of_base, of_new)| {
            subtract(&mut base, of_base);
            subtract(&mut new, of_new);
            Tested::new(&base, &new, measured.resolution)
        });
        let basis = match (&against_others, basis) {
            (None, _) => Basis::Change,
            // A function that waits for memory has no part in what makes most others vary.
            (Some(others), Basis::AgainstOthers) if change.noise.of_run <= others.noise.of_run => {
                Basis::Change
            }
            (Some(_), basis) => basis,
        };
        Self {
            measured,
            change,
            against_others,
            basis,
        }
    }

    fn has_verdict(&self) -> bool {
        self.change.runs >= FEWEST_RUNS
    }

    /// Returns the change that the verdict rests on; of two, the one that says less.
    fn judged(&self) -> &Tested {
        let change = &self.change;
        match (&self.against_others, self.basis) {
            (Some(others), Basis::AgainstOthers) => others,
            (Some(others), Basis::Both) if others.noise.of_run > change.noise.of_run => others,
            _ => change,
        }
    }

    fn p(&self) -> f64 {
        match (&self.against_others, self.basis) {
            (Some(others), Basis::AgainstOthers) => others.p,
            (Some(others), Basis::Both) => others.p.max(self.change.p),
            _ => self.change.p,
        }
    }

    fn finding(&self, is_significant: bool, level: f64, in_turns: bool) -> Finding {
        let judged = self.judged();
        if !self.has_verdict() {
            return Finding::none(judged);
        }
        // Of two changes, one alone may be significant.
        let verdict = |tested: &Tested| {
            let is_significant = is_significant || tested.p <= level;
            judge(tested.shift, tested.limits, is_significant)
        };
        let own = verdict(&self.change);
        match (&self.against_others, self.basis) {
            (Some(others), Basis::AgainstOthers) => match verdict(others) {
                // Perhaps the others got slower: only its own figures say that a function is faster.
                Verdict::Faster if !self.change.change().is_certain_like(others.change()) => {
                    Finding::of(Verdict::Unclear, &self.change, level)
                }
                verdict => Finding::of(verdict, others, level),
            },
            (Some(others), Basis::Both) => match (own, verdict(others)) {
                (own, others) if own == others => Finding::of(own, judged, level),
                (Verdict::Unclear, _) => Finding::of(Verdict::Unclear, &self.change, level),
                (_, Verdict::Unclear) => Finding::of(Verdict::Unclear, others, level),
                _ if in_turns => Finding::of(Verdict::Unclear, judged, level),
                _ => Finding::needs_turns(judged),
            },
            // Nothing tells the machine from the program. A slower function that is none is looked at; a faster one is believed.
            _ if own == Verdict::Faster && !in_turns && self.measured.metric.is_time() => {
                Finding::needs_turns(judged)
            }
            _ => Finding::of(own, judged, level),
        }
    }

    fn row(&self, is_significant: bool, level: f64, in_turns: bool) -> Row {
        let (base, new) = (median(&self.measured.base), median(&self.measured.new));
        #[allow(clippy::float_cmp, reason = "only equal figures have no difference")]
        let is_ratio = (base >= 1.0 && new >= 1.0) || base == new;
        Row {
            name: self.measured.name.clone(),
            metric: self.measured.metric,
            base,
            new,
            base_calls: self.measured.base_calls,
            new_calls: self.measured.new_calls,
            change: is_ratio.then(|| self.change.change()),
            against_others: self.against_others.as_ref().map(Tested::change),
            basis: self.basis,
            finding: self.finding(is_significant, level, in_turns),
        }
    }
}

fn subtract(values: &mut [f64], movement: &[f64]) {
    for (value, movement) in values.iter_mut().zip(movement) {
        *value -= movement;
    }
}

/// Returns how many runs find a change, for each clock that has verdicts.
fn power(candidates: &[Candidate<'_>], level: f64) -> Vec<Power> {
    let of_metric = |metric: Metric| {
        let mut of_metric: Vec<&Candidate<'_>> = candidates
            .iter()
            .filter(|candidate| candidate.measured.metric == metric && candidate.has_verdict())
            .collect();
        let of_run = |candidate: &Candidate<'_>| candidate.judged().noise.of_run;
        of_metric.order_by(|left, right| of_run(left).total_cmp(&of_run(right)));
        let middle = of_metric.get(of_metric.len() / 2)?;
        let noise = middle.judged().noise;
        let mut size = Power::CHANGE.ln_1p();
        if middle.against_others.is_some() {
            // The function that changes moves the median of all by half the distance of two neighbours.
            size -= (PI / 2.0).sqrt() * noise.of_run / of_metric.len() as f64;
        }
        Some(Power {
            metric,
            noise: noise.of_run.exp_m1(),
            runs: noise.runs_to_find_surely(size, level),
        })
    };
    // Percentiles are known to the width of a bucket, however many runs there are.
    let is_counted = |metric: &Metric| metric.is_time() && !metric.is_percentile();
    let metrics = Metric::ALL.into_iter().filter(is_counted);
    metrics.filter_map(of_metric).collect()
}
