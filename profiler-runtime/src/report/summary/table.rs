//! A summary as a table.

use super::Summary;
use super::notes::push_notes;
use crate::report::columns::Columns;
use crate::report::options::TableOptions;
use crate::report::render;

pub(super) fn render(summary: &Summary, options: &TableOptions) -> String {
    if let Some(reason) = &summary.nothing_measured {
        let mut text = format!("nothing was measured: {reason}\n");
        push_notes(&mut text, summary, &[]);
        return text;
    }
    let mut table = render::render(summary.rows.clone(), options, |rows, sorted_by| {
        Columns::of_summary(rows, sorted_by, options.statistics)
    });
    push_notes(&mut table.text, summary, &table.rows);
    table.text
}
