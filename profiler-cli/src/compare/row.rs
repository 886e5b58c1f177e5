//! What a comparison says about one figure.

use super::metric::Metric;
use super::verdict::Verdict;

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
    /// How `new` differs from `base`; `None` if either is less than one unit, so that a ratio says nothing.
    pub(crate) change: Option<Change>,
    /// What is left of the change without the movement that most functions have in common, if that is known.
    pub(crate) against_others: Option<Change>,
    pub(crate) basis: Basis,
    pub(crate) finding: Finding,
}

/// What most functions have in common, on one clock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Movement {
    pub(crate) metric: Metric,
    pub(crate) change: Change,
    /// How the functions are judged that have a part in it.
    pub(crate) basis: Basis,
    pub(crate) finding: Finding,
}

/// How a figure changed: fractions, such as 0.1 for a tenth more.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct Change {
    pub(crate) estimate: f64,
    /// The interval of 95 %; `None` with fewer than four runs a side, which have none.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// The p-value, before the correction for the number of functions.
    pub(crate) p: f64,
}

/// Which change a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Basis {
    /// The change of the figure itself.
    Change,
    /// What is left of it without the common movement.
    AgainstOthers,
    /// Both: nothing says whether the common movement is the program's or the machine's, so a verdict holds for either.
    Both,
}

/// The verdict, and what it would take to have one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    /// The figure is the same if its interval lies within this fraction.
    pub(crate) margin: f64,
    /// How many runs a side would give a verdict; `None` if there is one, or if a thousand would not.
    pub(crate) runs_needed: Option<usize>,
    /// Only runs in turns would give a verdict.
    pub(crate) turns_needed: bool,
}

/// How many runs find a change of [`CHANGE`](Power::CHANGE).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Power {
    pub(crate) metric: Metric,
    /// How much the figure varies from run to run, for the function in the middle: a standard deviation, as a fraction.
    pub(crate) noise: f64,
    /// The runs of each side, `None` for a thousand or more.
    pub(crate) runs: Option<usize>,
}

impl Power {
    /// The change that is to be found.
    pub(crate) const CHANGE: f64 = 0.05;
}

/// A change with a larger p-value may be chance.
pub(super) const CHANCE: f64 = 0.05;

impl Row {
    /// Returns `true` if both sides called the function equally often, to a percent.
    pub(crate) fn same_calls(&self) -> bool {
        (self.new_calls - self.base_calls).abs() <= 0.01 * self.base_calls.max(self.new_calls)
    }

    /// Returns `true` if a finding holds against the others only: the figure's own change may be chance.
    pub(crate) fn is_relative_alone(&self) -> bool {
        let changes = self.change.zip(self.against_others);
        let is_certain = changes.is_some_and(|(own, others)| own.is_certain_like(others));
        self.basis == Basis::AgainstOthers && !is_certain
    }
}

impl Change {
    /// Returns `true` if it is no chance, and goes the same way as another change.
    pub(crate) fn is_certain_like(self, other: Self) -> bool {
        self.p <= CHANCE && self.estimate.signum() == other.estimate.signum()
    }
}

impl Movement {
    /// Returns `true` if the functions may have moved together by chance.
    pub(crate) fn is_chance(&self) -> bool {
        self.change.p > CHANCE
    }

    /// Says by how much the functions got slower or faster.
    pub(crate) fn moved(&self) -> String {
        let estimate = self.change.estimate;
        let direction = if estimate < 0.0 { "faster" } else { "slower" };
        format!("{:.1} % {direction}", 100.0 * estimate.abs())
    }
}
