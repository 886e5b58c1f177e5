//! Averages as a table: torch's columns, and those that torch does not have.

use super::cells::time;
use super::columns::columns;
use super::row::AverageRow;
use super::{KeyAverages, SortKey, sort};
use crate::diagnostics::printable;
use crate::report::text::table::{self, Column, TOO_SHORT};

/// The options of a table of averages.
///
/// # Examples
///
/// ```
/// use profiler_runtime::report::{AveragesTable, SortKey};
/// use profiler_runtime::summary;
///
/// let options = AveragesTable::new().sort_by(SortKey::CpuTimeTotal).row_limit(10);
/// println!("{}", summary().key_averages().table(&options));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until they are given to `KeyAverages::table`"]
pub struct AveragesTable {
    sort_by: Option<SortKey>,
    row_limit: Option<usize>,
    statistics: bool,
    width: Option<usize>,
}

impl Default for AveragesTable {
    fn default() -> Self {
        Self::new()
    }
}

impl AveragesTable {
    /// Creates the default options: at most 100 rows, not sorted again, with torch's columns.
    pub const fn new() -> Self {
        Self {
            sort_by: None,
            row_limit: Some(100),
            statistics: false,
            width: None,
        }
    }

    /// Sets the value that rows are sorted by; by default they keep their order.
    pub const fn sort_by(self, key: SortKey) -> Self {
        Self {
            sort_by: Some(key),
            ..self
        }
    }

    /// Sets how many rows are shown at most, 100 by default; `None` shows all.
    pub fn row_limit(self, rows: impl Into<Option<usize>>) -> Self {
        Self {
            row_limit: rows.into(),
            ..self
        }
    }

    /// Adds columns that torch does not have: standard deviation, minimum, maximum and percentiles of times, the
    /// launch-bound verdict, allocations and peaks of memory.
    pub const fn statistics(self, statistics: bool) -> Self {
        Self { statistics, ..self }
    }

    /// Sets the width in characters: by default that of the terminal, or unlimited without one. Long names are
    /// shortened in the middle, numbers never.
    pub const fn width(self, columns: usize) -> Self {
        Self {
            width: Some(columns),
            ..self
        }
    }
}

pub(super) fn render(averages: &KeyAverages, options: &AveragesTable) -> String {
    let mut rows = averages.rows.clone();
    if let Some(key) = options.sort_by {
        sort::sort(&mut rows, key);
    }
    let hidden = table::truncate(&mut rows, options.row_limit);

    let mut columns = columns(&rows, averages.by, options.statistics);
    let label = |row: &AverageRow| table::label(&row.name, row.too_short);
    let mut labels: Vec<String> = rows.iter().map(label).collect();
    if averages.by.has_stack() {
        let stacks = unfold(&rows, &mut labels, &mut columns);
        columns.push(stacks);
    }
    let mut text = table::draw("Name", &labels, &columns, table::width(options.width));
    let mut note = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    if hidden > 0 {
        note(&format!("… and {hidden} more"));
    }
    if let Some(ns) = averages.self_cpu_time_total_ns {
        note(&format!("Self CPU time total: {}", time(ns)));
    }
    if let Some(ns) = averages.self_cuda_time_total_ns {
        note(&format!("Self CUDA time total: {}", time(ns)));
    }
    if rows.iter().any(|row| row.too_short) {
        note(TOO_SHORT);
    }
    let without: u64 = averages.rows.iter().map(|row| row.without_cuda).sum();
    if without > 0 {
        note(&format!("{without} calls without a GPU time"));
    }
    for line in &averages.notes {
        note(&printable(line));
    }
    text
}

/// Returns the column of stacks, which has a line for each scope. Inserts empty lines into the labels and the other
/// columns to match.
fn unfold(rows: &[AverageRow], labels: &mut Vec<String>, columns: &mut [Column]) -> Column {
    let lines = |row: &AverageRow| row.stack.as_ref().map_or(1, |stack| stack.len().max(1));
    let spread = |cells: &mut Vec<String>| {
        let cells_of_rows = std::mem::take(cells).into_iter().zip(rows);
        for (cell, row) in cells_of_rows {
            cells.push(cell);
            cells.extend(std::iter::repeat_n(String::new(), lines(row) - 1));
        }
    };
    spread(labels);
    for column in columns {
        spread(&mut column.cells);
    }
    let frames = |row: &AverageRow| -> Vec<String> {
        match row.stack.as_deref() {
            None | Some([]) => vec!["-".to_owned()],
            Some(stack) => stack.iter().map(|frame| printable(frame)).collect(),
        }
    };
    Column::text("Source Location", rows.iter().flat_map(frames).collect())
}
