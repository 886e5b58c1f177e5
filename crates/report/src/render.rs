//! Rows as a table.

use std::fmt::Write;

use super::options::TableOptions;
use super::row::Row;
use super::sort::{SortKey, sort_or_note};
use super::text::table::{self, Column, Table};

/// A table of rows, and the rows that it shows.
pub(super) struct Rendered {
    pub(super) text: String,
    pub(super) rows: Vec<Row>,
}

/// Draws rows in the order and with the limit that `options` set. `columns` returns the columns for the rows that are
/// shown.
pub(super) fn render(
    mut rows: Vec<Row>,
    options: &TableOptions,
    columns: impl FnOnce(&[Row], Option<SortKey>) -> Vec<Column>,
) -> Rendered {
    let key = options.sort_by.clone();
    let sorted = key.map(|key| sort_or_note(&mut rows, key));
    let sorted_by = sorted.as_ref().and_then(|sorted| sorted.by);
    let hottest = hottest(&rows);
    let hidden = options.limit(&mut rows);
    let label = |row: &Row| table::label(&row.name, row.too_short);
    let table = Table {
        title: "Name",
        labels: rows.iter().map(label).collect(),
        columns: columns(&rows, sorted_by),
        hottest,
    };
    let mut text = options.draw(table);
    if hidden > 0 {
        let _ = writeln!(text, "… and {hidden} more");
    }
    if let Some(note) = sorted.and_then(|sorted| sorted.note) {
        let _ = writeln!(text, "{note}");
    }
    Rendered { text, rows }
}

/// Returns the index of the row with the longest self time, on the GPU if any row has GPU times.
fn hottest(rows: &[Row]) -> Option<usize> {
    let has_cuda = rows.iter().any(|row| row.cuda.is_some());
    let own = |row: &Row| {
        let times = if has_cuda { row.cuda } else { row.cpu };
        times.map_or(0.0, |times| times.self_ns)
    };
    let rows = rows.iter().enumerate();
    let longest = rows.max_by(|(_, left), (_, right)| own(left).total_cmp(&own(right)));
    longest.map(|(index, _)| index)
}

#[cfg(test)]
mod tests;
