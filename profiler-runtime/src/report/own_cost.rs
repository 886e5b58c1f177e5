//! The cost of the profiler itself, as a summary shows it.

use super::row::Row;
use crate::clock::{clock, now};
use crate::own_cost;
use crate::scope::run_empty_scopes;
use crate::sync::RaceCell;

/// The cost of the profiler itself, as fractions of the wall time since it was first used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OwnCost {
    /// The time that measured threads spent on measuring, summed over threads. An estimate from the cost of a call
    /// (timed once) and of a GPU scope (timed once in 64 calls, including the driver's part).
    pub measured_threads: f64,
    /// The processor time of the profiler's own threads, including the loggers and handlers that run on them.
    pub background: f64,
}

/// Returns the cost of an ordinary call in nanoseconds. Measured once, with a cell that belongs to no name.
fn cost_of_call() -> f64 {
    static COST: RaceCell<f64> = RaceCell::new();
    *COST.get_or_init(|| {
        const CALLS: u32 = 512;
        // The first round warms up the caches.
        let rounds = [(); 4].map(|()| {
            let start = now();
            run_empty_scopes(CALLS);
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
