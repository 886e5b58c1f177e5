//! A comparison as JSON, for programs.

use serde::Serialize;

use crate::budget::Excess;
use crate::compare::{Change, Comparison, Metric, Row, Verdict};

/// The version of this JSON. A new key does not change it.
const SCHEMA_VERSION: u64 = 1;

#[derive(Serialize)]
struct Document<'c> {
    schema_version: u64,
    base_runs: usize,
    new_runs: usize,
    slower: usize,
    faster: usize,
    same: usize,
    unclear: usize,
    not_comparable: usize,
    over_budget: &'c [String],
    without_figure: &'c [String],
    overall: Vec<Figure<'c>>,
    rows: Vec<Figure<'c>>,
    only_base: &'c [String],
    only_new: &'c [String],
    too_small: usize,
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
    change: Change,
    verdict: Option<Verdict>,
    runs_needed: Option<usize>,
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
            verdict: Some(row.verdict).filter(|verdict| *verdict != Verdict::None),
            runs_needed: row.runs_needed,
        }
    }
}

pub(super) fn render(comparison: &Comparison, excess: &Excess) -> String {
    let document = Document {
        schema_version: SCHEMA_VERSION,
        base_runs: comparison.base_runs,
        new_runs: comparison.new_runs,
        slower: comparison.count(Verdict::Slower),
        faster: comparison.count(Verdict::Faster),
        same: comparison.count(Verdict::Same),
        unclear: comparison.count(Verdict::Unclear),
        not_comparable: comparison.count(Verdict::NotComparable),
        over_budget: &excess.over,
        without_figure: &excess.missing,
        overall: comparison.overall.iter().map(Figure::of).collect(),
        rows: comparison.rows.iter().map(Figure::of).collect(),
        only_base: &comparison.only_base,
        only_new: &comparison.only_new,
        too_small: comparison.small,
        notes: &comparison.notes,
    };
    // Strings and numbers cannot fail to serialise.
    serde_json::to_string_pretty(&document).unwrap_or_default()
}
