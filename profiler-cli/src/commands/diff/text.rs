//! A comparison as text, for terminals.

use std::fmt::Write;

use profiler_report::internal::{leave_out_shared_path, shorten_names, table_width};

use crate::compare::{
    Change, Comparison, Finding, MOST_RUNS, Movement, Row, Verdict, count, percent,
};

/// The name of the row that shows what most functions have in common.
pub(super) const MOST_FUNCTIONS: &str = "(most functions)";

/// Rows with the verdict “same” are counted; `all` lists them too.
pub(super) fn render(comparison: &Comparison, all: bool) -> Vec<String> {
    let mut lines = vec![headline(comparison)];
    let mut table = self::table(comparison, all);
    if table.len() > 1 {
        lines.push(String::new());
        let names = table.iter_mut().skip(1).filter_map(|row| row.first_mut());
        let left_out = leave_out_shared_path(names);
        lines.extend(aligned(table, table_width()));
        lines.extend(left_out);
    }
    let shown = comparison
        .rows
        .iter()
        .filter(|row| is_shown(row.finding, all));
    let rest = comparison.rows.len() - shown.count();
    lines.push(String::new());
    if rest > 0 {
        lines.push(format!("{}: same", count(rest, "more figure")));
    }
    lines.extend(remarks(comparison, str::to_owned, str::to_owned));
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
    let common = comparison.overall.iter();
    let common = common.filter(|common| common.finding.verdict.is_difference());
    let common = common.map(|common| {
        format!(
            "most functions got {} together ({})",
            common.moved(),
            common.metric
        )
    });
    let counts = verdicts
        .into_iter()
        .map(|verdict| (comparison.count(verdict), verdict))
        .filter(|(count, verdict)| *count > 0 || *verdict == Verdict::Slower)
        .map(|(count, verdict)| format!("{count} {}", verdict.as_str()));
    let found: Vec<String> = common.chain(counts).collect();
    format!("{}: {sides}", found.join(", "))
}

fn is_shown(finding: Finding, all: bool) -> bool {
    all || finding.verdict != Verdict::Same
}

/// Returns the table with its head: all rows with a finding, and above them what most functions have in common.
pub(super) fn table(comparison: &Comparison, all: bool) -> Vec<Vec<String>> {
    let has_others = !comparison.overall.is_empty();
    let mut head = vec!["Function", "Figure", "Base", "New", "Change", INTERVAL];
    if has_others {
        head.extend(["Against others", INTERVAL]);
    }
    head.push("Verdict");
    let movements = comparison.overall.iter();
    let movements = movements
        .filter(|common| is_shown(common.finding, all))
        .map(common_cells);
    let rows = comparison.rows.iter();
    let rows = rows
        .filter(|row| is_shown(row.finding, all))
        .map(|row| cells(row, has_others));
    let head = head.into_iter().map(str::to_owned).collect();
    [head].into_iter().chain(movements).chain(rows).collect()
}

const INTERVAL: &str = "95 % interval";

/// The names that are listed of functions that are on one side only, and their width.
const LISTED: usize = 10;
const LISTED_WIDTH: usize = 60;

/// Returns the lines below the table, with names as `quoted` shows them, and texts of files as `escaped` does.
pub(super) fn remarks(
    comparison: &Comparison,
    quoted: fn(&str) -> String,
    escaped: fn(&str) -> String,
) -> Vec<String> {
    let mut lines = Vec::new();
    let list = |names: &[String]| {
        let shown = &names[..names.len().min(LISTED)];
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        let list = shorten_names(&shown, LISTED_WIDTH);
        let list: Vec<String> = list.iter().map(|name| quoted(name)).collect();
        let list = list.join(", ");
        match names.len() - shown.len() {
            0 => list,
            more => format!("{list} and {more} more, which `--format json` lists"),
        }
    };
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
    lines.extend(comparison.notes.iter().map(|note| escaped(note)));
    lines
}

/// Returns the cells of a row.
fn cells(row: &Row, has_others: bool) -> Vec<String> {
    let mut cells = vec![
        row.name.clone(),
        row.metric.to_string(),
        row.metric.format(row.base),
        row.metric.format(row.new),
    ];
    cells.extend(change_cells(row.change));
    if has_others {
        cells.extend(change_cells(row.against_others));
    }
    let mut verdict = verdict(row.finding);
    if row.finding.verdict.is_difference() && row.is_relative_alone() {
        verdict.push_str(" than the others");
    }
    if !row.same_calls() {
        let (base, new) = (row.base_calls, row.new_calls);
        let _ = write!(verdict, ", calls {base:.0} → {new:.0}");
    }
    cells.push(verdict);
    cells
}

/// Returns the cells of what most functions have in common. It is no sum, so it has no figures.
fn common_cells(common: &Movement) -> Vec<String> {
    let [change, interval] = change_cells(Some(common.change));
    vec![
        MOST_FUNCTIONS.to_owned(),
        common.metric.to_string(),
        String::new(),
        String::new(),
        change,
        interval,
        String::new(),
        String::new(),
        verdict(common.finding),
    ]
}

fn change_cells(change: Option<Change>) -> [String; 2] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let interval = change.and_then(|change| change.low.zip(change.high));
    [
        or_dash(change.map(|change| percent(change.estimate))),
        or_dash(interval.map(|(low, high)| format!("{} to {}", percent(low), percent(high)))),
    ]
}

/// Returns the verdict with what makes it understood.
fn verdict(finding: Finding) -> String {
    let margin = 100.0 * finding.margin;
    match (finding.verdict, finding.runs_needed) {
        (Verdict::Same, _) => format!("same within {margin:.0} %"),
        (Verdict::Unclear, _) if finding.turns_needed => "unclear: machine or program".to_owned(),
        (Verdict::Unclear, Some(runs)) => format!("unclear: about {runs} runs needed"),
        (Verdict::Unclear, None) => format!("unclear: more than {MOST_RUNS} runs needed"),
        (verdict, _) => verdict.as_str().to_owned(),
    }
}

/// Names are not shortened to less than this.
const MIN_NAME: usize = 30;
/// The space between two columns.
const GAP: &str = "  ";

/// Returns the lines of a table whose columns are aligned: the first two and the last to the left, numbers to the right.
/// Names are shortened so that the table takes at most `most` columns.
fn aligned(mut table: Vec<Vec<String>>, most: usize) -> Vec<String> {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let width = |table: &[Vec<String>], column: usize| {
        let cells = table.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let others = (1..columns).map(|column| GAP.len() + width(&table, column));
    let space = most.saturating_sub(others.sum()).max(MIN_NAME);
    let names: Vec<&str> = table
        .iter()
        .filter_map(|row| row.first())
        .map(String::as_str)
        .collect();
    let names = shorten_names(&names, space);
    for (row, name) in table.iter_mut().zip(names) {
        row[0] = name;
    }
    let widths: Vec<usize> = (0..columns).map(|column| width(&table, column)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                0 | 1 => format!("{cell:width$}"),
                last if last + 1 == columns => cell.clone(),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        cells.join(GAP).trim_end().to_owned()
    };
    table.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_to_the_width_and_still_differ() {
        let kernel = |argument: u32| {
            let name = format!(
                "void at::native::softmax_warp_forward<float, {argument}>(float*, int, int)"
            );
            vec![
                name,
                "CUDA".to_owned(),
                "1.00 ms".to_owned(),
                "slower".to_owned(),
            ]
        };
        let lines = aligned(vec![kernel(8), kernel(10), kernel(8)], 64);
        assert_eq!(
            lines,
            [
                "softmax_warp_forward<float, 8>   CUDA  1.00 ms  slower",
                "softmax_warp_forward<float, 10>  CUDA  1.00 ms  slower",
                "softmax_warp_forward<float, 8>   CUDA  1.00 ms  slower",
            ]
        );
    }
}
