//! The table: medians over the processes.

use bench_harness::{Table, median};
use serde::Serialize;

use crate::child::{Cost, Measured};

/// One peer.
#[derive(Serialize)]
pub(crate) struct Row {
    name: &'static str,
    alone: Figures,
    on_all: Figures,
    mebibytes_kept: Option<f64>,
}

/// The nanoseconds added to a call, and their ratio to two raw timestamps.
#[derive(Serialize)]
struct Figures {
    nanoseconds: f64,
    ratio: f64,
}

impl Row {
    pub(crate) fn new(name: &'static str, processes: &[Measured]) -> Self {
        let kept: Option<Vec<f64>> = processes.iter().map(|one| one.mebibytes_kept).collect();
        Self {
            name,
            alone: Figures::of(processes, |one| &one.alone),
            on_all: Figures::of(processes, |one| &one.on_all),
            mebibytes_kept: kept.map(|kept| median(&kept)),
        }
    }
}

impl Figures {
    fn of(processes: &[Measured], run: fn(&Measured) -> &Cost) -> Self {
        let of = |part: fn(&Cost) -> f64| {
            let parts: Vec<f64> = processes.iter().map(|one| part(run(one))).collect();
            median(&parts)
        };
        Self {
            nanoseconds: of(|cost| cost.peer.median),
            // From the same process, so that both have the same noise.
            ratio: of(|cost| cost.peer.median / cost.floor.median),
        }
    }
}

pub(crate) fn table(threads: usize, rows: &[Row]) -> Table {
    let on_all = format!("ns on {threads} threads");
    let mut table = Table::new(&[
        "added to one call by",
        "ns on 1 thread",
        "x two raw",
        on_all.as_str(),
        "x two raw",
        "MiB kept per 10^6 calls",
    ]);
    for row in rows {
        table.row([
            row.name.to_owned(),
            format!("{:.2}", row.alone.nanoseconds),
            format!("{:.2}", row.alone.ratio),
            format!("{:.2}", row.on_all.nanoseconds),
            format!("{:.2}", row.on_all.ratio),
            row.mebibytes_kept
                .map_or("unknown".to_owned(), |kept| format!("{kept:.1}")),
        ]);
    }
    table
}
