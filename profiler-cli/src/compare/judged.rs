//! Judging all figures together: what they have in common, and how many there are, matters to each of them.

use super::common::movements;
use super::metric::Metric;
use super::run::{Figures, Run};
use super::statistics::{Shift, benjamini_hochberg, hodges_lehmann, mad, mann_whitney, median};
use super::verdict::{Verdict, judge, runs_needed};
use super::{Change, FEWEST_RUNS, Row};

/// The share of all reported differences that may be false.
const FALSE_DISCOVERIES: f64 = 0.05;
/// The smallest difference that matters.
const LEAST: f64 = 0.03;
/// The name of the row that shows what all functions have in common.
pub(super) const ALL_FUNCTIONS: &str = "(all functions)";

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
        if base_values.is_empty()
            || new_values.is_empty()
            || all.any(|value| metric.logarithm(*value).is_none())
        {
            return None;
        }
        let middle = median(&base_values).min(median(&new_values)).max(1.0);
        let mut resolution: f64 = 0.0;
        for run in base.iter().chain(new) {
            let Some(figures) = run.functions.get(name) else {
                continue;
            };
            resolution = resolution.max(relative_resolution(figures, metric, middle));
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
        let logarithms = |values: &[f64]| -> Vec<f64> {
            let logarithms = values
                .iter()
                .filter_map(|value| self.metric.logarithm(*value));
            logarithms.collect()
        };
        (logarithms(&self.base), logarithms(&self.new))
    }
}

fn relative_resolution(figures: &Figures, metric: Metric, value: f64) -> f64 {
    match metric {
        Metric::Allocated => 0.0,
        metric if metric.is_cuda() => figures.cuda_resolution_ns / value,
        _ => figures.cpu_resolution_ns / value,
    }
}

/// A row with the logarithms that it is judged by.
struct Prepared {
    row: Row,
    shift: Shift,
    threshold: f64,
    /// The number of runs on the side with fewer.
    runs: usize,
}

impl Prepared {
    fn new(measured: &Measured, base: &[f64], new: &[f64]) -> Self {
        let shift = hodges_lehmann(base, new);
        let spread = mad(base).max(mad(new));
        let threshold = (1.0 + LEAST.max(measured.resolution))
            .ln()
            .max(2.0 * spread);
        let p = mann_whitney(base, new);
        let row = Row {
            name: measured.name.clone(),
            metric: measured.metric,
            base: median(&measured.base),
            new: median(&measured.new),
            base_calls: measured.base_calls,
            new_calls: measured.new_calls,
            change: Change {
                estimate: shift.estimate.exp_m1(),
                low: shift.low.exp_m1(),
                high: shift.high.exp_m1(),
                threshold: threshold.exp_m1(),
                p,
            },
            verdict: Verdict::None,
            runs_needed: None,
        };
        Self {
            row,
            shift,
            threshold,
            runs: base.len().min(new.len()),
        }
    }

    fn has_verdict(&self) -> bool {
        self.runs >= FEWEST_RUNS
    }
}

/// Returns the rows of what all functions have in common, and the rows of the functions, the largest changes first.
///
/// The first `base_runs` runs of a side that has all figures are those of the base. A common movement is a finding only if
/// the sides took turns; otherwise the machine may have changed.
pub(super) fn judge_all(
    measured: &[Measured],
    base_runs: usize,
    is_interleaved: bool,
) -> (Vec<Row>, Vec<Row>) {
    let mut overall = Vec::new();
    let mut prepared = Vec::new();
    for metric in Metric::ALL {
        let of_metric: Vec<&Measured> =
            measured.iter().filter(|row| row.metric == metric).collect();
        let common = common(&of_metric, base_runs);
        if let Some(movement) = &common {
            overall.push(movement_row(metric, &of_metric, movement, base_runs));
        }
        for row in of_metric {
            let (mut base, mut new) = row.logarithms();
            if let Some(movement) = common.as_ref().filter(|_| row.is_complete) {
                let (of_base, of_new) = movement.split_at(base_runs);
                subtract(&mut base, of_base);
                subtract(&mut new, of_new);
            }
            prepared.push(Prepared::new(row, &base, &new));
        }
    }
    let of_overall = overall.len();
    overall.append(&mut prepared);
    let mut rows = verdicts(overall);
    let mut functions = rows.split_off(of_overall);
    for row in &mut rows {
        if !is_interleaved && matches!(row.verdict, Verdict::Slower | Verdict::Faster) {
            row.verdict = Verdict::Unclear;
        }
    }
    functions.sort_by(|left, right| {
        let size = |row: &Row| row.change.estimate.abs();
        let order = |row: &Row| row.verdict.order();
        let by_size = size(right).total_cmp(&size(left));
        order(left).cmp(&order(right)).then(by_size)
    });
    (rows, functions)
}

/// Returns the common movement of the functions that all runs have. Memory does not depend on the machine, and
/// percentiles say little about the rest of a run.
fn common(rows: &[&Measured], base_runs: usize) -> Option<Vec<f64>> {
    let complete = rows.iter().filter(|row| row.is_complete);
    let functions: Vec<Vec<f64>> = complete
        .filter(|row| row.metric != Metric::Allocated && row.base.len() == base_runs)
        .map(|row| {
            let (mut base, new) = row.logarithms();
            base.extend(new);
            base
        })
        .collect();
    movements(&functions)
}

fn subtract(values: &mut [f64], movement: &[f64]) {
    for (value, movement) in values.iter_mut().zip(movement) {
        *value -= movement;
    }
}

/// Returns the row of the common movement. Its figures are the sums of all functions' figures.
fn movement_row(
    metric: Metric,
    rows: &[&Measured],
    movement: &[f64],
    base_runs: usize,
) -> Prepared {
    let (base, new) = movement.split_at(base_runs);
    let sum = |figure: fn(&Measured) -> f64| rows.iter().map(|row| figure(row)).sum::<f64>();
    let all = Measured {
        name: ALL_FUNCTIONS.to_owned(),
        metric,
        base: vec![sum(|row| median(&row.base) * row.base_calls)],
        new: vec![sum(|row| median(&row.new) * row.new_calls)],
        base_calls: 1.0,
        new_calls: 1.0,
        resolution: 0.0,
        is_complete: true,
    };
    Prepared::new(&all, base, new)
}

/// Gives each row its verdict; the test corrects for their number.
fn verdicts(rows: Vec<Prepared>) -> Vec<Row> {
    let tested = rows.iter().filter(|row| row.has_verdict());
    let p_values: Vec<f64> = tested.map(|row| row.row.change.p).collect();
    let level = FALSE_DISCOVERIES / p_values.len().max(1) as f64;
    let mut significant = benjamini_hochberg(&p_values, FALSE_DISCOVERIES).into_iter();
    let least = LEAST.ln_1p();
    let with_verdict = rows.into_iter().map(|prepared| {
        let has_verdict = prepared.has_verdict();
        let Prepared {
            mut row,
            shift,
            threshold,
            runs,
        } = prepared;
        if has_verdict {
            let is_significant = significant.next().unwrap_or(false);
            row.verdict = judge(shift, threshold, least, is_significant);
            if row.verdict == Verdict::Unclear {
                row.runs_needed = runs_needed(runs, shift, threshold, level);
            }
        }
        row
    });
    with_verdict.collect()
}
