//! The summary as a table for people.

use std::fmt::Write;

use super::columns::{Column, columns};
use crate::diagnostics::printable;
use crate::report::summary::{Row, Summary};

/// What the rows of a table are sorted by, the largest first (names from A to Z).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SortBy {
    /// The total time.
    #[default]
    Total,
    /// The time without measured children.
    SelfTime,
    /// The mean of all calls.
    Mean,
    /// The median.
    P50,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The longest call.
    Max,
    /// The number of calls.
    Calls,
    /// The name.
    Name,
}

/// How a table is made.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{SortBy, TableOptions, summary};
///
/// let options = TableOptions::default().sort_by(SortBy::SelfTime).limit(10);
/// println!("{}", summary().table(&options));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "options do nothing until they are given to `Summary::table`"]
pub struct TableOptions {
    sort_by: SortBy,
    limit: Option<usize>,
    width: Option<usize>,
}

impl TableOptions {
    /// What the rows are sorted by; the total by default.
    pub const fn sort_by(self, sort_by: SortBy) -> Self {
        Self { sort_by, ..self }
    }

    /// How many rows are shown at most; all by default.
    pub const fn limit(self, rows: usize) -> Self {
        Self {
            limit: Some(rows),
            ..self
        }
    }

    /// How many characters wide the table may be; the terminal's width by default, or no bound where
    /// there is no terminal. Long names are shortened in the middle, numbers never.
    pub const fn width(self, columns: usize) -> Self {
        Self {
            width: Some(columns),
            ..self
        }
    }
}

/// No name is shortened to less than this.
const SHORTEST_NAME: usize = 16;

pub(crate) fn render(summary: &Summary, options: &TableOptions) -> String {
    if let Some(reason) = &summary.nothing_measured {
        return with_notes(format!("nothing was measured: {reason}\n"), summary, &[]);
    }
    let mut rows: Vec<&Row> = summary.rows.iter().collect();
    sort(&mut rows, options.sort_by);
    let hidden = rows
        .len()
        .saturating_sub(options.limit.unwrap_or(usize::MAX));
    rows.truncate(rows.len() - hidden);

    let names: Vec<String> = rows.iter().map(|row| shown_name(row)).collect();
    let width = terminal_width(options.width);
    let mut table = draw("Name", &names, &columns(&rows), width);
    if hidden > 0 {
        let _ = writeln!(table, "… and {hidden} more");
    }
    with_notes(table, summary, &rows)
}

/// Draws a table: labels on the left, shortened where it would be too wide, and columns beside them.
pub(crate) fn draw(title: &str, labels: &[String], columns: &[Column], width: usize) -> String {
    let widths: Vec<usize> = columns.iter().map(Column::width).collect();
    let beside: usize = widths.iter().map(|width| width + 2).sum();
    let lengths = labels.iter().map(|label| label.chars().count());
    let longest = lengths.max().unwrap_or(0).max(title.chars().count());
    let label_width = longest.min(width.saturating_sub(beside).max(SHORTEST_NAME));
    let line = |label: &str, cell: &dyn Fn(&Column) -> String| {
        let label = shortened(label, label_width);
        let padding = padding(&label, label_width);
        let mut line = label + &padding;
        for (column, width) in columns.iter().zip(&widths) {
            let cell = cell(column);
            let padding = self::padding(&cell, *width);
            let (left, right) = if column.is_text {
                (cell, padding)
            } else {
                (padding, cell)
            };
            line.extend(["  ", &left, &right]);
        }
        line.truncate(line.trim_end_matches(' ').len());
        line + "\n"
    };
    let mut table = line(title, &|column| column.title.clone());
    let _ = writeln!(table, "{}", "─".repeat(label_width + beside));
    for (index, label) in labels.iter().enumerate() {
        table += &line(label, &|column| column.cells[index].clone());
    }
    table
}

/// The spaces that a text lacks to be so many characters wide.
// Not the width of a `format!`: that panics above 65,535.
fn padding(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text.chars().count()))
}

fn sort(rows: &mut [&Row], by: SortBy) {
    let key = |row: &Row| match by {
        SortBy::Total => row.total_ns,
        SortBy::SelfTime => row.self_ns,
        SortBy::Mean => row.mean_ns,
        SortBy::P50 => row.p50_ns,
        SortBy::P95 => row.p95_ns,
        SortBy::P99 => row.p99_ns,
        SortBy::Max => row.max_ns,
        SortBy::Calls => row.calls as f64,
        SortBy::Name => 0.0,
    };
    rows.sort_by(|left, right| {
        key(right)
            .total_cmp(&key(left))
            .then_with(|| left.name.cmp(&right.name))
    });
}

/// Names whose single values are not to be trusted are marked.
fn shown_name(row: &Row) -> String {
    let mark = if row.too_short { "~ " } else { "" };
    format!("{mark}{}", printable(&row.name))
}

/// The middle of a path says least: its crate and its function are kept.
fn shortened(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let end = (width - 1) * 2 / 3;
    let start = width - 1 - end;
    let head: String = name.chars().take(start).collect();
    let tail: String = name.chars().skip(length - end).collect();
    format!("{head}…{tail}")
}

/// How wide a table may be, where nothing is given.
pub(crate) fn terminal_width(given: Option<usize>) -> usize {
    given.unwrap_or_else(|| {
        // Of whichever standard stream is a terminal.
        terminal_size::terminal_size().map_or(usize::MAX, |(width, _)| width.0.into())
    })
}

/// What the numbers alone do not say.
fn with_notes(mut table: String, summary: &Summary, rows: &[&Row]) -> String {
    let mut note = |line: &str| {
        table.push_str(line);
        table.push('\n');
    };
    if rows.iter().any(|row| row.too_short) {
        note(
            "~ too short to be timed one by one: totals and means are right, single values are not",
        );
    }
    let mut count = |what: &str, of: fn(&Row) -> u64| {
        for row in rows.iter().filter(|row| of(row) > 0) {
            note(&format!("{}: {} {what}", printable(&row.name), of(row)));
        }
    };
    count("panicked", |row| row.panicked);
    count("dropped before done", |row| row.dropped_futures);
    count("still open, in no column", |row| row.open);
    count(
        "ended before a scope inside them, so that self is an upper bound",
        |row| row.disordered,
    );
    for (reason, entries) in &summary.dropped {
        note(&format!(
            "{entries} log entries dropped: {}",
            reason.as_str()
        ));
    }
    for (reason, calls) in &summary.cuda.lost {
        note(&format!(
            "{calls} calls without a GPU time: {}",
            reason.as_str()
        ));
    }
    if summary.cuda.rejected_times > 0 {
        note(&format!(
            "{} impossible times of the CUDA driver rejected",
            summary.cuda.rejected_times
        ));
    }
    let records = &summary.cuda.records;
    // One in a hundred may be the system's doing.
    if records.long * 100 > records.timed {
        note(&format!(
            "{} of {} records of events that were timed took longer than 0.1 ms, the longest {:.1} ms: the launch queue \
             was full, and held up the program's launches too, or the machine was busy with other work",
            records.long,
            records.timed,
            records.longest_ns / 1e6
        ));
    }
    let saw_no_work = |row: &Row| row.cuda.as_ref().is_some_and(|cuda| cuda.saw_no_work);
    if let Some(names) = listed(rows, saw_no_work) {
        note(&format!(
            "almost no GPU time on the default stream: {names}; what launches on another stream wants \
             `stream = …`"
        ));
    }
    if let Some(names) = listed(rows, |row| row.without_stream > 0) {
        note(&format!(
            "no GPU time, since no stream is named: {names}; what launches kernels wants `stream = …`, \
             `cuda::with_stream` or `cuda::set_default_stream`, or PROFILER_CUDA_STREAM=legacy or per-thread"
        ));
    }
    if summary.unsaved > 0 {
        note(&format!(
            "{} log entries taken and not written yet",
            summary.unsaved
        ));
    }
    if summary.unmeasured > 0 {
        note(&format!(
            "{} calls not measured: no memory for their statistics",
            summary.unmeasured
        ));
    }
    for notice in &summary.notices {
        note(notice);
    }
    if summary.cuda.ready || !summary.cuda.is_known {
        note(&on_gpu(summary));
    }
    note(&own_cost(summary));
    table
}

/// The first of the names of which something is to be noted; none where there are none.
fn listed(rows: &[&Row], is_noted: impl Fn(&Row) -> bool) -> Option<String> {
    const SHOWN: usize = 5;
    let names: Vec<String> = rows
        .iter()
        .filter(|row| is_noted(row))
        .map(|row| printable(&row.name))
        .collect();
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.get(..names.len() - more)?.join(", ");
    match (names.len(), more) {
        (0, _) => None,
        (_, 0) => Some(shown),
        _ => Some(format!("{shown} and {more} more")),
    }
}

/// What there is of CUDA, and how it goes.
fn on_gpu(summary: &Summary) -> String {
    let health = &summary.cuda;
    if !health.ready {
        return format!("times are CPU times: {}", health.status);
    }
    let place = health.uncertainty_ns.map_or(String::new(), |ns| {
        format!("; placed on the time line to ±{:.1} µs", ns / 1e3)
    });
    format!(
        "{}: {} GPU times in flight, {} at most, {} event pairs{place}",
        health.status, health.in_flight, health.high_water, health.pairs
    )
}

fn own_cost(summary: &Summary) -> String {
    let cost = &summary.own_cost;
    format!(
        "the profiler itself: {:.3} % of the wall time in measured threads, {:.3} % in its own",
        cost.measured_threads * 100.0,
        cost.background * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The width of a `format!` is at most 65,535.
    #[test]
    fn cells_of_any_length_are_padded() {
        let long = "é".repeat(70_000);
        let labels = [long.clone(), "short".to_owned()];
        let columns = [
            Column::text("Text", vec![long.clone(), "-".to_owned()]),
            Column::numbers("Number", vec!["1".repeat(70_000), "2".to_owned()]),
        ];
        let table = draw("Name", &labels, &columns, usize::MAX);
        let lengths: Vec<usize> = table.lines().map(|line| line.chars().count()).collect();
        assert_eq!(lengths, [210_004; 4]);
        assert!(table.lines().nth(3).unwrap().ends_with(" 2"));
    }

    #[test]
    fn long_names_keep_both_ends() {
        let name = "application::model::layers::Attention::forward";
        let short = shortened(name, 24);
        assert_eq!(short.chars().count(), 24);
        assert!(
            short.starts_with("applicat…") && short.ends_with("Attention::forward"[3..].trim())
        );
        assert_eq!(shortened("main", 24), "main");
    }
}
