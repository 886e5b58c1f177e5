//! A comparison as JSON, for programs.

use profiler_report::internal::escape_json;
use serde::Serialize;

use super::text::MOST_FUNCTIONS;
use crate::budget::Excess;
use crate::compare::{Basis, Change, Comparison, Finding, Metric, Movement, Power, Row, Verdict};

/// The version of this JSON. A new key does not change it.
const SCHEMA_VERSION: u64 = 1;

#[derive(Serialize)]
struct Document<'c> {
    schema_version: u64,
    base_runs: usize,
    new_runs: usize,
    in_turns: bool,
    slower: usize,
    faster: usize,
    same: usize,
    unclear: usize,
    not_comparable: usize,
    over_budget: &'c [String],
    without_figure: &'c [String],
    overall: Vec<Common>,
    rows: Vec<Figure<'c>>,
    only_base: &'c [String],
    only_new: &'c [String],
    too_small: usize,
    power: Vec<FindsChange>,
    notes: &'c [String],
}

/// Times are in nanoseconds, memory in bytes, changes are fractions.
#[derive(Serialize)]
struct Figure<'c> {
    name: &'c str,
    metric: Metric,
    base: f64,
    new: f64,
    base_calls: f64,
    new_calls: f64,
    change: Option<Change>,
    against_others: Option<Change>,
    judged_by: Basis,
    #[serde(flatten)]
    finding: Judgement,
}

impl<'c> Figure<'c> {
    fn of(row: &'c Row) -> Self {
        Self {
            name: &row.name,
            metric: row.metric,
            base: row.base,
            new: row.new,
            base_calls: row.base_calls,
            new_calls: row.new_calls,
            change: row.change,
            against_others: row.against_others,
            judged_by: row.basis,
            finding: Judgement::of(row.finding),
        }
    }
}

/// What most functions have in common.
#[derive(Serialize)]
struct Common {
    name: &'static str,
    metric: Metric,
    change: Change,
    functions_judged_by: Basis,
    #[serde(flatten)]
    finding: Judgement,
}

impl Common {
    fn of(common: &Movement) -> Self {
        Self {
            name: MOST_FUNCTIONS,
            metric: common.metric,
            change: common.change,
            functions_judged_by: common.basis,
            finding: Judgement::of(common.finding),
        }
    }
}

#[derive(Serialize)]
struct Judgement {
    verdict: Option<Verdict>,
    margin: f64,
    runs_needed: Option<usize>,
    turns_needed: bool,
}

impl Judgement {
    fn of(finding: Finding) -> Self {
        Self {
            verdict: Some(finding.verdict).filter(|verdict| *verdict != Verdict::None),
            margin: finding.margin,
            runs_needed: finding.runs_needed,
            turns_needed: finding.turns_needed,
        }
    }
}

/// How many runs a side find a change in nine of ten cases.
#[derive(Serialize)]
struct FindsChange {
    change: f64,
    #[serde(flatten)]
    power: Power,
}

impl FindsChange {
    const fn of(power: &Power) -> Self {
        Self {
            change: Power::CHANGE,
            power: *power,
        }
    }
}

pub(super) fn render(comparison: &Comparison, excess: &Excess) -> String {
    let document = Document {
        schema_version: SCHEMA_VERSION,
        base_runs: comparison.base_runs,
        new_runs: comparison.new_runs,
        in_turns: comparison.in_turns,
        slower: comparison.count(Verdict::Slower),
        faster: comparison.count(Verdict::Faster),
        same: comparison.count(Verdict::Same),
        unclear: comparison.count(Verdict::Unclear),
        not_comparable: comparison.count(Verdict::NotComparable),
        over_budget: &excess.over,
        without_figure: &excess.missing,
        overall: comparison.overall.iter().map(Common::of).collect(),
        rows: comparison.rows.iter().map(Figure::of).collect(),
        only_base: &comparison.only_base,
        only_new: &comparison.only_new,
        too_small: comparison.small,
        power: comparison.power.iter().map(FindsChange::of).collect(),
        notes: &comparison.notes,
    };
    // Strings and numbers cannot fail to serialise.
    escape_json(&serde_json::to_string_pretty(&document).unwrap_or_default())
}
