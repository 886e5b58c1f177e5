//! A summary as a table.

use std::fmt::Write;

use super::Summary;
use super::columns::columns;
use super::notes::push_notes;
use crate::report::options::TableOptions;
use crate::report::sort::sort_or_note;
use crate::report::text::table;

pub(super) fn render(summary: &Summary, options: &TableOptions) -> String {
    if let Some(reason) = &summary.nothing_measured {
        let mut text = format!("nothing was measured: {reason}\n");
        push_notes(&mut text, summary, &[]);
        return text;
    }
    let mut rows = summary.rows.clone();
    let key = options.sort_by.clone();
    let not_sorted = key.and_then(|key| sort_or_note(&mut rows, key));
    let hidden = options.row_limit.truncate(&mut rows);
    let labels: Vec<String> = rows
        .iter()
        .map(|row| table::label(&row.name, row.too_short))
        .collect();
    let width = table::width(options.width);
    let mut text = table::draw("Name", &labels, &columns(&rows), width);
    if hidden > 0 {
        let _ = writeln!(text, "… and {hidden} more");
    }
    if let Some(note) = not_sorted {
        let _ = writeln!(text, "{note}");
    }
    push_notes(&mut text, summary, &rows);
    text
}
