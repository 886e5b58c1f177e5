//! The columns of the table, and the units they are in.

use crate::report::summary::{CudaTimes, Row};

/// One column, with a cell for each row.
pub(crate) struct Column {
    pub(super) title: String,
    pub(crate) cells: Vec<String>,
    /// Whether it is read from the left.
    pub(super) is_text: bool,
}

impl Column {
    pub(crate) fn numbers(title: impl Into<String>, cells: Vec<String>) -> Self {
        Self {
            title: title.into(),
            cells,
            is_text: false,
        }
    }

    pub(crate) fn text(title: impl Into<String>, cells: Vec<String>) -> Self {
        Self {
            is_text: true,
            ..Self::numbers(title, cells)
        }
    }

    pub(super) fn width(&self) -> usize {
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
        let title = format!("{title} ({})", unit.name);
        Self::numbers(title, rows.iter().map(cell).collect())
    }
}

/// Totals are in one unit and the times of single calls in one, so that they compare at a glance.
struct Units {
    totals: &'static Unit,
    calls: &'static Unit,
}

impl Units {
    fn of(rows: &[&Row]) -> Self {
        let with_cuda = |cpu: fn(&Row) -> f64, cuda: fn(&CudaTimes) -> f64| {
            rows.iter()
                .flat_map(move |row| [Some(cpu(row)), row.cuda.as_ref().map(cuda)])
                .flatten()
        };
        Self {
            totals: Unit::for_times(with_cuda(|row| row.total_ns, |cuda| cuda.total_ns)),
            calls: Unit::for_times(with_cuda(|row| row.mean_ns, |cuda| cuda.mean_ns)),
        }
    }
}

type OfRow = fn(&Row) -> f64;
type OfCuda = fn(&CudaTimes) -> f64;

/// The times that stand side by side where there are GPU times, of all calls and of single ones.
const TOTALS: [(&str, OfRow, OfCuda); 2] = [
    ("total", |row| row.total_ns, |cuda| cuda.total_ns),
    ("self", |row| row.self_ns, |cuda| cuda.self_ns),
];
const SINGLE: [(&str, OfRow, OfCuda); 6] = [
    ("mean", |row| row.mean_ns, |cuda| cuda.mean_ns),
    ("p50", |row| row.p50_ns, |cuda| cuda.p50_ns),
    ("p95", |row| row.p95_ns, |cuda| cuda.p95_ns),
    ("p99", |row| row.p99_ns, |cuda| cuda.p99_ns),
    ("min", |row| row.min_ns, |cuda| cuda.min_ns),
    ("max", |row| row.max_ns, |cuda| cuda.max_ns),
];
/// The last of them.
const EXTREMES: usize = 2;

/// The columns of a table. Where there are GPU times they stand beside those of the CPU, else there is
/// nothing to tell apart.
pub(super) fn columns(rows: &[&Row]) -> Vec<Column> {
    let units = Units::of(rows);
    let has_cuda = rows.iter().any(|row| row.cuda.is_some());
    let counts = |row: &&Row| calls(row.calls, row.primitive_calls);
    let mut columns = vec![Column::numbers("Calls", rows.iter().map(counts).collect())];
    for (title, cpu, cuda) in TOTALS {
        let cpu = |row: &Row| Some(cpu(row));
        push_pair(&mut columns, rows, title, units.totals, has_cuda, cpu, cuda);
    }
    if rows.iter().any(|row| row.futures > 0) {
        let polled = |row: &Row| (row.futures > 0).then_some(row.polled_ns);
        columns.push(Column::times("Polled", units.totals, rows, polled));
    }
    // Beside those of the GPU, the extremes would make lines that nobody reads; the exports have them.
    let shown = if has_cuda {
        SINGLE.len() - EXTREMES
    } else {
        SINGLE.len()
    };
    for (title, cpu, cuda) in SINGLE.into_iter().take(shown) {
        let cpu = |row: &Row| (row.calls > 0).then(|| cpu(row));
        push_pair(&mut columns, rows, title, units.calls, has_cuda, cpu, cuda);
    }
    let wall = |row: &&Row| format!("{:.2}", row.wall_share * 100.0);
    columns.push(Column::numbers("% wall", rows.iter().map(wall).collect()));
    if has_cuda {
        columns.extend(verdicts(rows));
    }
    columns
}

/// One column for the CPU, and one for the GPU where there is any.
fn push_pair(
    columns: &mut Vec<Column>,
    rows: &[&Row],
    title: &str,
    unit: &Unit,
    has_cuda: bool,
    cpu: impl Fn(&Row) -> Option<f64>,
    cuda: OfCuda,
) {
    if !has_cuda {
        columns.push(Column::times(&capitalised(title), unit, rows, cpu));
        return;
    }
    let cuda = |row: &Row| row.cuda.as_ref().map(cuda);
    columns.push(Column::times(&format!("CPU {title}"), unit, rows, cpu));
    columns.push(Column::times(&format!("CUDA {title}"), unit, rows, cuda));
}

/// As a title: percentiles are written small everywhere.
fn capitalised(title: &str) -> String {
    let mut letters = title.chars();
    match letters.next() {
        Some(first) if first != 'p' => first.to_uppercase().chain(letters).collect(),
        _ => title.to_owned(),
    }
}

/// How many calls waited for the CPU, and what that comes to.
fn verdicts(rows: &[&Row]) -> [Column; 2] {
    let cells = |cell: fn(&CudaTimes) -> String| {
        rows.iter()
            .map(|row| row.cuda.as_ref().map_or("-".to_owned(), cell))
            .collect()
    };
    let launch = cells(|cuda| format!("{:.1}", cuda.launch_bound * 100.0));
    let verdict = cells(|cuda| cuda.verdict().to_string());
    [
        Column::numbers("% launch", launch),
        Column::numbers("Verdict", verdict),
    ]
}

/// `150/100`: all calls, and those that were not recursive.
pub(crate) fn calls(all: u64, primitive: u64) -> String {
    if primitive == all {
        all.to_string()
    } else {
        format!("{all}/{primitive}")
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
    fn recursive_calls_show_both_counts() {
        assert_eq!(calls(150, 100), "150/100");
        assert_eq!(calls(7, 7), "7");
    }
}
