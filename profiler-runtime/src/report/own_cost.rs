//! What the profiler itself costs, as a summary shows it.

use super::summary::Row;
use crate::clock::{clock, now};
use crate::own_cost;
use crate::scope::Probe;
use crate::sync::RaceCell;

/// What the profiler itself costs, as shares of the wall time since it was first used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OwnCost {
    /// What measured threads spent on measuring, added up over them: an estimate, from the cost of a call
    /// (timed once) and of a GPU scope (timed once in 64 calls, with the driver's part in it).
    pub measured_threads: f64,
    /// The processor time of the profiler's own threads, with the loggers and handlers of traces that run on them.
    pub background: f64,
}

/// What an ordinary call costs, in nanoseconds: found out once, on a name that nobody sees.
fn cost_of_call() -> f64 {
    static COST: RaceCell<f64> = RaceCell::new();
    *COST.get_or_init(|| {
        const CALLS: u32 = 512;
        // The first round finds the code and the cell.
        let rounds = [(); 4].map(|()| {
            let start = now();
            Probe::run(CALLS);
            now().saturating_sub(start)
        });
        let best = rounds.into_iter().min().unwrap_or_default();
        clock().nanoseconds(best as f64) / f64::from(CALLS)
    })
}

pub(super) fn of(rows: &[Row], wall_ns: f64) -> OwnCost {
    let calls: u64 = rows.iter().map(|row| row.calls).sum();
    let on_gpu: u64 = rows
        .iter()
        .map(|row| row.cuda.as_ref().map_or(0, |cuda| cuda.calls))
        .sum();
    let measured = calls as f64 * cost_of_call() + on_gpu as f64 * own_cost::mean_sample();
    let background = own_cost::background_ns();
    OwnCost {
        measured_threads: measured / wall_ns.max(1.0),
        background: background as f64 / wall_ns.max(1.0),
    }
}
