//! A summary as a table.

use std::fmt::Write;

use super::columns::columns;
use super::notes::push_notes;
use super::{Row, Summary};
use crate::report::text::table;

/// The column that a table is sorted by, largest first (names from A to Z).
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

/// The options of a summary's table.
///
/// # Examples
///
/// ```
/// use profiler_runtime::report::{SortBy, TableOptions};
/// use profiler_runtime::summary;
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
    /// Sets the column that rows are sorted by; the total by default.
    pub const fn sort_by(self, sort_by: SortBy) -> Self {
        Self { sort_by, ..self }
    }

    /// Sets how many rows are shown at most; all by default.
    pub const fn limit(self, rows: usize) -> Self {
        Self {
            limit: Some(rows),
            ..self
        }
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

pub(super) fn render(summary: &Summary, options: &TableOptions) -> String {
    if let Some(reason) = &summary.nothing_measured {
        let mut text = format!("nothing was measured: {reason}\n");
        push_notes(&mut text, summary, &[]);
        return text;
    }
    let mut rows: Vec<&Row> = summary.rows.iter().collect();
    sort(&mut rows, options.sort_by);
    let hidden = table::truncate(&mut rows, options.limit);
    let labels: Vec<String> = rows
        .iter()
        .map(|row| table::label(&row.name, row.too_short))
        .collect();
    let width = table::width(options.width);
    let mut text = table::draw("Name", &labels, &columns(&rows), width);
    if hidden > 0 {
        let _ = writeln!(text, "… and {hidden} more");
    }
    push_notes(&mut text, summary, &rows);
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_sorted_by_name() {
        let row = |name: &str, total_ns: f64| Row {
            name: name.to_owned(),
            total_ns,
            ..Row::default()
        };
        let rows = [row("b", 1.0), row("c", 2.0), row("a", 1.0)];
        let names = |by: SortBy| -> String {
            let mut rows: Vec<&Row> = rows.iter().collect();
            sort(&mut rows, by);
            rows.iter().map(|row| &*row.name).collect()
        };
        assert_eq!(names(SortBy::Total), "cab");
        assert_eq!(names(SortBy::Name), "abc");
        assert_eq!(names(SortBy::Calls), "abc");
    }
}
