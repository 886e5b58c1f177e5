//! The summary as a table for people.

use std::fmt::Write;

use crate::summary::{Row, Summary};

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

    let columns = columns(&rows);
    let numbers: usize = columns.iter().map(|column| column.width() + 2).sum();
    let longest = rows
        .iter()
        .map(|row| shown_name(row).chars().count())
        .max()
        .unwrap_or(0)
        .max(4);
    let room = width(options).saturating_sub(numbers).max(SHORTEST_NAME);
    let name_width = longest.min(room);

    let mut table = String::new();
    let _ = write!(table, "{:name_width$}", "Name");
    for column in &columns {
        let _ = write!(table, "  {:>1$}", column.title, column.width());
    }
    let _ = write!(table, "\n{}\n", "─".repeat(name_width + numbers));
    for (index, row) in rows.iter().enumerate() {
        let _ = write!(
            table,
            "{:name_width$}",
            shortened(&shown_name(row), name_width)
        );
        for column in &columns {
            let _ = write!(table, "  {:>1$}", column.cells[index], column.width());
        }
        table.push('\n');
    }
    if hidden > 0 {
        let _ = writeln!(table, "… and {hidden} more");
    }
    with_notes(table, summary, &rows)
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

struct Column {
    title: String,
    cells: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        let cells = self
            .cells
            .iter()
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0);
        cells.max(self.title.chars().count())
    }

    fn times(title: &str, unit: &Unit, rows: &[&Row], time: impl Fn(&Row) -> Option<f64>) -> Self {
        let cell = |row: &&Row| match time(row) {
            Some(time) => format!("{:.3}", time / unit.nanoseconds),
            None => "-".to_owned(),
        };
        Self {
            title: format!("{title} ({})", unit.name),
            cells: rows.iter().map(cell).collect(),
        }
    }
}

/// Totals are in one unit and the times of single calls in one, so that they compare at a glance.
fn columns(rows: &[&Row]) -> Vec<Column> {
    let totals = Unit::for_times(rows.iter().map(|row| row.total_ns));
    let calls_unit = Unit::for_times(rows.iter().map(|row| row.mean_ns));
    let total =
        |title, time: fn(&Row) -> f64| Column::times(title, totals, rows, |row| Some(time(row)));
    let call = |title, time: fn(&Row) -> f64| {
        Column::times(title, calls_unit, rows, |row| {
            (row.calls > 0).then(|| time(row))
        })
    };
    let mut columns = vec![
        Column {
            title: "Calls".to_owned(),
            cells: rows.iter().map(|row| calls(row)).collect(),
        },
        total("Total", |row| row.total_ns),
        total("Self", |row| row.self_ns),
    ];
    if rows.iter().any(|row| row.futures > 0) {
        let polled = |row: &Row| (row.futures > 0).then_some(row.polled_ns);
        columns.push(Column::times("Polled", totals, rows, polled));
    }
    columns.extend([
        call("Mean", |row| row.mean_ns),
        call("p50", |row| row.p50_ns),
        call("p95", |row| row.p95_ns),
        call("p99", |row| row.p99_ns),
        call("Min", |row| row.min_ns),
        call("Max", |row| row.max_ns),
        Column {
            title: "% wall".to_owned(),
            cells: rows
                .iter()
                .map(|row| format!("{:.2}", row.wall_share * 100.0))
                .collect(),
        },
    ]);
    columns
}

/// `150/100`: all calls, and those that were not recursive.
fn calls(row: &Row) -> String {
    if row.primitive_calls == row.calls {
        row.calls.to_string()
    } else {
        format!("{}/{}", row.calls, row.primitive_calls)
    }
}

struct Unit {
    name: &'static str,
    nanoseconds: f64,
}

const UNITS: [Unit; 4] = [
    Unit {
        name: "ns",
        nanoseconds: 1.0,
    },
    Unit {
        name: "µs",
        nanoseconds: 1e3,
    },
    Unit {
        name: "ms",
        nanoseconds: 1e6,
    },
    Unit {
        name: "s",
        nanoseconds: 1e9,
    },
];

impl Unit {
    /// The largest unit in which the shortest time is at least a tenth, but not so small that the
    /// longest takes more than seven digits before the point.
    fn for_times(times: impl Iterator<Item = f64> + Clone) -> &'static Self {
        let shown = times.filter(|time| *time > 0.0);
        let shortest = shown.clone().fold(f64::INFINITY, f64::min);
        let longest = shown.fold(0.0, f64::max);
        let [ns, us, ms, s] = &UNITS;
        let fine = [s, ms, us]
            .into_iter()
            .find(|unit| shortest >= 0.1 * unit.nanoseconds);
        let fine = if longest > 0.0 {
            fine.unwrap_or(ns)
        } else {
            ns
        };
        let coarse = [ns, us, ms]
            .into_iter()
            .find(|unit| longest / unit.nanoseconds < 1e7);
        let coarse = coarse.unwrap_or(s);
        if fine.nanoseconds >= coarse.nanoseconds {
            fine
        } else {
            coarse
        }
    }
}

/// Names whose single values are not to be trusted are marked.
fn shown_name(row: &Row) -> String {
    let mark = if row.too_short { "~ " } else { "" };
    format!("{mark}{}", printable(&row.name))
}

/// A name may hold anything, a line of the table must not.
fn printable(name: &str) -> String {
    name.chars()
        .map(|char| if char.is_control() { '\u{fffd}' } else { char })
        .collect()
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

fn width(options: &TableOptions) -> usize {
    options.width.unwrap_or_else(|| {
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
    if summary.unsaved > 0 {
        note(&format!(
            "{} log entries taken and not written yet",
            summary.unsaved
        ));
    }
    for notice in &summary.notices {
        note(notice);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_show_the_shortest_and_the_longest() {
        let unit = |times: &[f64]| Unit::for_times(times.iter().copied()).name;
        assert_eq!(unit(&[1_500.0, 2_500_000.0]), "µs");
        assert_eq!(unit(&[80e6]), "ms");
        assert_eq!(unit(&[30e6, 12e9]), "ms");
        assert_eq!(unit(&[2e9, 12e9]), "s");
        assert_eq!(unit(&[12.0]), "ns");
        assert_eq!(
            unit(&[12.0, 90e9]),
            "ms",
            "not eleven digits, even if the shortest reads as zero"
        );
        assert_eq!(unit(&[0.0, 0.0]), "ns");
        assert_eq!(unit(&[]), "ns");
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

    #[test]
    fn recursive_calls_show_both_counts() {
        let row = Row {
            calls: 150,
            primitive_calls: 100,
            ..Row::default()
        };
        assert_eq!(calls(&row), "150/100");
        assert_eq!(
            calls(&Row {
                calls: 7,
                primitive_calls: 7,
                ..Row::default()
            }),
            "7"
        );
    }
}
