//! Averages as a table: torch's columns, and those that torch does not have.

use super::KeyAverages;
use super::columns::columns;
use crate::diagnostics::printable;
use crate::report::options::TableOptions;
use crate::report::row::Row;
use crate::report::sort::sort_or_note;
use crate::report::text::cells::time;
use crate::report::text::table::{self, Column, TOO_SHORT};

pub(super) fn render(averages: &KeyAverages, options: &TableOptions) -> String {
    let mut rows = averages.rows.clone();
    let key = options.sort_by.clone();
    let not_sorted = key.and_then(|key| sort_or_note(&mut rows, key));
    let hidden = options.row_limit.truncate(&mut rows);

    let mut columns = columns(&rows, averages.by, options.statistics);
    let label = |row: &Row| table::label(&row.name, row.too_short);
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
    if let Some(line) = not_sorted {
        note(&line);
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
fn unfold(rows: &[Row], labels: &mut Vec<String>, columns: &mut [Column]) -> Column {
    let lines = |row: &Row| row.stack.as_ref().map_or(1, |stack| stack.len().max(1));
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
    let frames = |row: &Row| -> Vec<String> {
        match row.stack.as_deref() {
            None | Some([]) => vec!["-".to_owned()],
            Some(stack) => stack.iter().map(|frame| printable(frame)).collect(),
        }
    };
    Column::text("Source Location", rows.iter().flat_map(frames).collect())
}
