//! Averages as a table: torch's columns, and those that torch does not have.

use profiler_host::diagnostics::printable;

use super::KeyAverages;
use crate::columns::Columns;
use crate::options::TableOptions;
use crate::render;
use crate::row::Row;
use crate::sampled_gpu;
use crate::sort::is_of_sorting;
use crate::text::table::{Column, TOO_SHORT};
use crate::text::units::time;

pub(super) fn render(averages: &KeyAverages, options: &TableOptions) -> String {
    let mut table = render::render(averages.rows.clone(), options, |rows, sorted_by| {
        let mut columns = Columns::of_averages(rows, sorted_by, options.statistics, averages.by);
        if averages.by.has_stack() {
            columns.push(Column::text(
                "Source Location",
                rows.iter().map(stack).collect(),
            ));
        }
        columns
    });
    let mut note = |line: &str| {
        table.text.push_str(line);
        table.text.push('\n');
    };
    if let Some(ns) = averages.self_cpu_time_total_ns {
        note(&format!("Self CPU time total: {}", time(ns)));
    }
    if let Some(ns) = averages.self_cuda_time_total_ns {
        note(&format!("Self CUDA time total: {}", time(ns)));
    }
    if table.rows.iter().any(|row| row.too_short) {
        note(TOO_SHORT);
    }
    let without: u64 = averages
        .rows
        .iter()
        .map(|row| row.without_cuda)
        .fold(0, u64::saturating_add);
    if without > 0 {
        note(&format!("{without} calls without a GPU time"));
    }
    let mut notes = String::new();
    // The order of this table is another one.
    let is_sorted_anew = options.sort_by.is_some();
    let remarks = averages
        .notes
        .iter()
        .filter(|note| !(is_sorted_anew && is_of_sorting(note)));
    let remarks = remarks.map(|note| printable(note));
    options.push_notes(&mut notes, remarks.collect());
    for line in sampled_gpu::notes(&averages.gpus, &table.rows) {
        notes.push_str(&line);
        notes.push('\n');
    }
    let notes = options.fill(&table.text, notes);
    table.text + &notes
}

/// Returns the enclosing scopes of a row, each on a line.
fn stack(row: &Row) -> String {
    match row.stack.as_deref() {
        None | Some([]) => "-".to_owned(),
        Some(stack) => {
            let frames: Vec<String> = stack.iter().map(|frame| printable(frame)).collect();
            frames.join("\n")
        }
    }
}
