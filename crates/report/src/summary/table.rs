//! A summary as a table.

use super::Summary;
use super::notes::push_notes;
use crate::columns::Columns;
use crate::options::TableOptions;
use crate::render;

pub(super) fn render(summary: &Summary, options: &TableOptions) -> String {
    if let Some(reason) = &summary.nothing_measured {
        let mut text = format!("nothing was measured: {reason}\n");
        push_notes(&mut text, summary, &[], options);
        return options.fill("", text);
    }
    let mut table = render::render(summary.rows.clone(), options, |rows, sorted_by| {
        Columns::of_summary(rows, sorted_by, options.statistics)
    });
    let mut notes = String::new();
    push_notes(&mut notes, summary, &table.rows, options);
    let notes = options.fill(&table.text, notes);
    table.text.push_str(&notes);
    table.text
}
