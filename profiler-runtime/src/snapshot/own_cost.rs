//! The cost of the profiler itself, estimated from its parts.

use profiler_host::process::processor_time::processor_time;
use profiler_host::sync::RaceCell;
use profiler_report::internal::gpu_times;
use profiler_report::{OwnCost, Row};

use crate::clock::{clock, now};
use crate::collect;
use crate::local;
use crate::own_cost::{self, GPU_SCOPES};
use crate::scope::run_empty_scopes;
use crate::session;

/// Returns the cost of an ordinary call in nanoseconds: on the fast path. Measured once, with a cell that belongs to no name.
fn cost_of_fast_call() -> f64 {
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

/// Returns the cost of calls, without their GPU times, in nanoseconds.
fn cost_of_calls(calls: u64) -> f64 {
    let (slow, cost_of_slow) = own_cost::slow_calls();
    // The polls of a future may be more than its calls.
    let fast = calls.saturating_sub(slow);
    fast as f64 * cost_of_fast_call() + cost_of_slow + cost_of_records()
}

/// Returns the cost of handing on logged calls and calls that sessions recorded, in nanoseconds.
fn cost_of_records() -> f64 {
    static LOGGED: RaceCell<f64> = RaceCell::new();
    static RECORDED: RaceCell<f64> = RaceCell::new();
    let cost = |records: u64, cost: &RaceCell<f64>, measure: fn() -> f64| match records {
        0 => 0.0,
        records => records as f64 * cost.get_or_init(measure),
    };
    cost(collect::taken(), &LOGGED, collect::cost_of_record)
        + cost(session::recorded(), &RECORDED, session::cost_of_record)
}

pub(super) fn of(rows: &[Row], wall_ns: f64) -> OwnCost {
    let calls: u64 = rows
        .iter()
        .map(|row| row.calls)
        .fold(0, u64::saturating_add);
    let of_calls = cost_of_calls(calls);
    let on_gpu: u64 = rows.iter().map(gpu_times).fold(0, u64::saturating_add);
    let on_gpu = on_gpu.saturating_add(own_cost::more_gpu_times());
    let gpu_time_ns = GPU_SCOPES.median();
    let measured = of_calls + on_gpu as f64 * gpu_time_ns;
    let self_ns: f64 = rows
        .iter()
        .filter_map(|row| row.cpu)
        .map(|cpu| cpu.self_ns)
        .sum();
    OwnCost {
        measured_threads: share_of_threads(measured, wall_ns, self_ns),
        processor: processor_time().map_or(0.0, |used| (measured / used.max(1) as f64).min(1.0)),
        background: own_cost::background_ns() as f64 / wall_ns.max(1.0),
        call_ns: if calls > 0 {
            of_calls / calls as f64
        } else {
            cost_of_fast_call()
        },
        thread_time_ns: local::thread_time_cost(),
        gpu_time_ns,
        non_exhaustive: (),
    }
}

/// Returns the share of measuring in the time of the measured threads.
///
/// Several threads may spend more on measuring than the wall time that passed: their time is at least what they spent.
fn share_of_threads(measuring_ns: f64, wall_ns: f64, self_ns: f64) -> f64 {
    measuring_ns / wall_ns.max(self_ns).max(measuring_ns).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_a_share_of_what_the_threads_had() {
        let shares = [
            // One thread that is idle most of the time.
            share_of_threads(10.0, 1000.0, 30.0),
            // Eight threads, each with a tenth of its time.
            share_of_threads(800.0, 1000.0, 8000.0),
            // Eight threads that do little else, at the top level.
            share_of_threads(8000.0, 1000.0, 300.0),
            share_of_threads(0.0, 0.0, 0.0),
        ];
        let expected = [0.01, 0.1, 1.0, 0.0];
        for (share, expected) in shares.into_iter().zip(expected) {
            assert!((share - expected).abs() < 1e-12, "{share}");
        }
    }
}
