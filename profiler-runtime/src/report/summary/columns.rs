//! The columns of a summary's table.

use super::Row;
use super::units::Unit;
use crate::report::text::table::{Column, calls};
use crate::report::times::Times;

/// The units of a table: one for totals and one for the times of single calls, so that rows are comparable.
struct Units {
    totals: &'static Unit,
    calls: &'static Unit,
}

impl Units {
    fn of(rows: &[Row]) -> Self {
        let times = || rows.iter().flat_map(|row| [row.cpu, row.cuda]).flatten();
        Self {
            totals: Unit::for_times(times().map(|times| times.total_ns)),
            calls: Unit::for_times(times().map(|times| times.mean_ns)),
        }
    }
}

type Time = fn(&Times) -> f64;

/// The columns of times of all calls together.
const TOTALS: [(&str, Time); 2] = [
    ("total", |times| times.total_ns),
    ("self", |times| times.self_ns),
];
/// The columns of times of single calls.
const SINGLE: [(&str, Time); 4] = [
    ("mean", |times| times.mean_ns),
    ("p50", |times| times.p50_ns),
    ("p95", |times| times.p95_ns),
    ("p99", |times| times.p99_ns),
];
/// Shown without GPU times only: with them the lines would be too long to read. JSON and CSV have them.
const EXTREMES: [(&str, Time); 2] = [("min", |times| times.min_ns), ("max", |times| times.max_ns)];

/// Returns the columns of a table, in pairs for CPU and GPU if any row has GPU times.
pub(super) fn columns(rows: &[Row]) -> Vec<Column> {
    let units = Units::of(rows);
    let has_cuda = rows.iter().any(|row| row.cuda.is_some());
    let number = |title: &str, cell: &dyn Fn(&Row) -> Option<String>| Column::of(rows, title, cell);
    let mut columns = vec![number("Calls", &|row| {
        Some(calls(row.calls, row.primitive_calls))
    })];
    for column in TOTALS {
        push_times(&mut columns, rows, column, units.totals, has_cuda);
    }
    if rows.iter().any(|row| row.futures > 0) {
        let polled = |row: &Row| (row.futures > 0).then_some(row.polled_ns);
        columns.push(times("Polled", units.totals, rows, polled));
    }
    let extremes = EXTREMES.into_iter().filter(|_| !has_cuda);
    for column in SINGLE.into_iter().chain(extremes) {
        push_times(&mut columns, rows, column, units.calls, has_cuda);
    }
    columns.push(number("% self", &|row| {
        Some(format!("{:.2}", row.cpu?.self_percent))
    }));
    if has_cuda {
        columns.extend([
            number("% launch", &|row| {
                Some(format!("{:.1}", row.launch_bound? * 100.0))
            }),
            number("Verdict", &|row| Some(row.verdict()?.to_string())),
        ]);
    }
    columns
}

/// Adds a column for the CPU, and one for the GPU if `has_cuda`.
fn push_times(
    columns: &mut Vec<Column>,
    rows: &[Row],
    (title, time): (&str, Time),
    unit: &Unit,
    has_cuda: bool,
) {
    let cpu = |row: &Row| row.cpu.as_ref().map(time);
    if !has_cuda {
        columns.push(times(&capitalised(title), unit, rows, cpu));
        return;
    }
    let cuda = |row: &Row| row.cuda.as_ref().map(time);
    columns.push(times(&format!("CPU {title}"), unit, rows, cpu));
    columns.push(times(&format!("CUDA {title}"), unit, rows, cuda));
}

fn times(title: &str, unit: &Unit, rows: &[Row], time: impl Fn(&Row) -> Option<f64>) -> Column {
    let title = format!("{title} ({})", unit.name);
    Column::of(rows, title, |row| {
        time(row).map(|time| format!("{:.3}", time / unit.nanoseconds))
    })
}

/// Capitalises a title, except percentiles, which are written in lower case everywhere.
fn capitalised(title: &str) -> String {
    let mut letters = title.chars();
    match letters.next() {
        Some(first) if first != 'p' => first.to_uppercase().chain(letters).collect(),
        _ => title.to_owned(),
    }
}
