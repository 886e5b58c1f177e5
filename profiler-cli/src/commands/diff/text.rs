//! A comparison as text, for terminals.

use std::fmt::Write;

use crate::compare::{Comparison, Row, Verdict, count};

/// Rows with the verdict “same” are counted; `all` lists them too.
pub(super) fn render(comparison: &Comparison, all: bool) -> Vec<String> {
    let mut lines = vec![headline(comparison)];
    let shown = shown(comparison, all);
    if !shown.is_empty() {
        lines.push(String::new());
        let mut table = vec![
            [
                "Function",
                "Figure",
                "Base",
                "New",
                "Change",
                "95 % interval",
                "Verdict",
            ]
            .map(str::to_owned),
        ];
        table.extend(shown.iter().map(|row| cells(row)));
        lines.extend(aligned(&table));
    }
    let rest = comparison.rows.len() + comparison.overall.len() - shown.len();
    lines.push(String::new());
    if rest > 0 {
        lines.push(format!("{}: same", count(rest, "more figure")));
    }
    lines.extend(remarks(comparison));
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Returns the result in one line.
pub(super) fn headline(comparison: &Comparison) -> String {
    let sides = format!(
        "{} of the base, {} of the new version",
        count(comparison.base_runs, "run"),
        comparison.new_runs
    );
    if !comparison.has_verdicts() {
        return format!("{}: {sides}", count(comparison.rows.len(), "figure"));
    }
    let verdicts = [
        Verdict::Slower,
        Verdict::Faster,
        Verdict::Unclear,
        Verdict::NotComparable,
        Verdict::Same,
    ];
    let counts: Vec<String> = verdicts
        .into_iter()
        .map(|verdict| (comparison.count(verdict), verdict))
        .filter(|(count, verdict)| *count > 0 || *verdict == Verdict::Slower)
        .map(|(count, verdict)| format!("{count} {}", verdict.as_str()))
        .collect();
    format!("{}: {sides}", counts.join(", "))
}

/// Returns the rows that are listed: all with a finding, and those of all functions.
pub(super) fn shown(comparison: &Comparison, all: bool) -> Vec<&Row> {
    let rows = comparison.overall.iter().chain(&comparison.rows);
    rows.filter(|row| all || row.verdict != Verdict::Same)
        .collect()
}

/// Returns the lines below the table.
pub(super) fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    let list = |names: &[String]| names.join(", ");
    if !comparison.only_base.is_empty() {
        lines.push(format!("only in the base: {}", list(&comparison.only_base)));
    }
    if !comparison.only_new.is_empty() {
        lines.push(format!(
            "only in the new version: {}",
            list(&comparison.only_new)
        ));
    }
    if comparison.small > 0 {
        lines.push(format!(
            "{} too little time to be judged: `--min-share` sets the limit",
            match comparison.small {
                1 => "1 function takes".to_owned(),
                many => format!("{many} functions take"),
            }
        ));
    }
    if !comparison.overall.is_empty() {
        lines.push(
            "changes of functions are relative to what all functions have in common".to_owned(),
        );
    }
    lines.extend(comparison.notes.iter().cloned());
    lines
}

/// Returns the cells of a row.
pub(super) fn cells(row: &Row) -> [String; 7] {
    let change = &row.change;
    let interval = format!("{} to {}", percent(change.low), percent(change.high));
    [
        row.name.clone(),
        row.metric.to_string(),
        row.metric.format(row.base),
        row.metric.format(row.new),
        percent(change.estimate),
        interval,
        verdict(row),
    ]
}

/// Returns the verdict with what makes it understood.
fn verdict(row: &Row) -> String {
    let threshold = 100.0 * row.change.threshold;
    let mut text = match (row.verdict, row.runs_needed) {
        (Verdict::Same, _) => format!("same within {threshold:.0} %"),
        (Verdict::Unclear, Some(runs)) => format!("unclear: about {runs} runs needed"),
        // A verdict on all functions was withdrawn: no number of runs would give one.
        (Verdict::Unclear, None) if row.change.low > row.change.threshold => {
            "unclear: the sides did not run in turns".to_owned()
        }
        (Verdict::Unclear, None) => "unclear: more than 99 runs needed".to_owned(),
        (verdict, _) => verdict.as_str().to_owned(),
    };
    if !row.same_calls() {
        let (base, new) = (row.base_calls, row.new_calls);
        let _ = write!(text, ", calls {base:.0} → {new:.0}");
    }
    text
}

/// Formats a fraction as a percentage with its sign.
fn percent(fraction: f64) -> String {
    let percent = 100.0 * fraction;
    let digits = usize::from(percent.abs() < 99.95);
    format!("{percent:+.digits$} %")
}

/// Returns the lines of a table whose columns are aligned: the first two and the last to the left, numbers to the right.
fn aligned(table: &[[String; 7]]) -> Vec<String> {
    let width = |column: usize| {
        let cells = table.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let line = |row: &[String; 7]| {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                0 | 1 => format!("{cell:width$}"),
                6 => cell.clone(),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    table.iter().map(line).collect()
}
