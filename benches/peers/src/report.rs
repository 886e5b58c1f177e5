//! The table: medians over the processes.

use bench_harness::{Spread, Table, median};
use serde::Serialize;

use crate::child::{Cost, Measured};

/// One peer.
#[derive(Serialize)]
pub(crate) struct Row {
    name: &'static str,
    hot: Figures,
    on_all: Figures,
    paced: Figures,
    /// Instructions per call in the hot loop.
    instructions: Option<f64>,
    mebibytes_kept_hot: Option<f64>,
    mebibytes_kept_paced: Option<f64>,
}

/// The nanoseconds added to a call, and their ratio to two bare readings of the time-stamp counter: 2nd percentiles and
/// medians of the batches.
#[derive(Serialize)]
struct Figures {
    nanoseconds: f64,
    floor_nanoseconds: f64,
    low_ratio: f64,
    median_ratio: f64,
}

impl Row {
    pub(crate) fn new(
        name: &'static str,
        processes: &[Measured],
        instructions: Option<f64>,
    ) -> Self {
        let kept = |of: fn(&Measured) -> Option<f64>| {
            let kept: Option<Vec<f64>> = processes.iter().map(of).collect();
            kept.map(|kept| median(&kept))
        };
        Self {
            name,
            hot: Figures::of(processes, |one| &one.hot),
            on_all: Figures::of(processes, |one| &one.on_all),
            paced: Figures::of(processes, |one| &one.paced),
            instructions,
            mebibytes_kept_hot: kept(|one| one.hot_kept),
            mebibytes_kept_paced: kept(|one| one.paced_kept),
        }
    }
}

impl Figures {
    fn of(processes: &[Measured], run: fn(&Measured) -> &Cost) -> Self {
        let of = |part: &dyn Fn(&Cost) -> f64| {
            let parts: Vec<f64> = processes.iter().map(|one| part(run(one))).collect();
            median(&parts)
        };
        // Both of the same process, so that both have the same noise.
        let ratio = |part: fn(&Spread) -> f64| of(&|cost| part(&cost.peer) / part(&cost.floor));
        Self {
            nanoseconds: of(&|cost| cost.peer.low),
            floor_nanoseconds: of(&|cost| cost.floor.low),
            low_ratio: ratio(|spread| spread.low),
            median_ratio: ratio(|spread| spread.median),
        }
    }
}

pub(crate) fn table(threads: usize, rows: &[Row]) -> Table {
    let on_all = format!("{threads} threads: median");
    let mut table = Table::new(&[
        "added to one call by",
        "ns",
        "x two rdtsc, hot: 2nd pct",
        "median",
        on_all.as_str(),
        "paced: ns",
        "x two rdtsc: 2nd pct",
        "median",
        "instructions",
        "MiB kept per 10^6 calls, hot",
        "paced",
    ]);
    let optional = |number: Option<f64>, digits: usize| {
        number.map_or("unknown".to_owned(), |number| format!("{number:.digits$}"))
    };
    for row in rows {
        table.row([
            row.name.to_owned(),
            format!("{:.1}", row.hot.nanoseconds),
            format!("{:.2}", row.hot.low_ratio),
            format!("{:.2}", row.hot.median_ratio),
            format!("{:.2}", row.on_all.median_ratio),
            format!("{:.1}", row.paced.nanoseconds),
            format!("{:.2}", row.paced.low_ratio),
            format!("{:.2}", row.paced.median_ratio),
            optional(row.instructions, 0),
            optional(row.mebibytes_kept_hot, 1),
            optional(row.mebibytes_kept_paced, 1),
        ]);
    }
    table
}

/// Returns the nanoseconds that two bare readings add to a call, in the hot loop and paced.
pub(crate) fn floor(rows: &[Row]) -> (f64, f64) {
    let of = |part: fn(&Row) -> f64| median(&rows.iter().map(part).collect::<Vec<_>>());
    (
        of(|row| row.hot.floor_nanoseconds),
        of(|row| row.paced.floor_nanoseconds),
    )
}
