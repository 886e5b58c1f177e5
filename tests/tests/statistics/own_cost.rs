//! The cost of the profiler itself, as the summary states it.

#![cfg(unix)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use profiler_runtime::{builder, measured, summary};
use profiler_tests::measuring;

#[measured(name = "empty")]
fn empty(value: u64) -> u64 {
    value
}

/// Returns what a call is said to cost, after many more.
fn cost_of_calls() -> f64 {
    for value in 0..60_000 {
        black_box(empty(black_box(value)));
    }
    summary().own_cost.call_ns
}

/// Returns the shortest time in which the clock of this thread is read twice.
fn two_readings() -> f64 {
    let read = || {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the call writes to the `timespec` only.
        let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        assert_eq!(result, 0);
    };
    let times = (0..1_000).map(|_| {
        let start = Instant::now();
        read();
        read();
        start.elapsed()
    });
    times.min().unwrap_or(Duration::ZERO).as_nanos() as f64
}

#[test]
fn the_cost_of_a_call_has_that_of_its_thread_time() {
    if !measuring() {
        return;
    }
    let _profiler = builder().thread_time(true).init().expect("set up");
    let call_ns = cost_of_calls();
    // Costs are known to an eighth.
    let least = 0.8 * two_readings();
    assert!(call_ns > least, "{call_ns} {least}");
    let cost = summary().own_cost;
    assert!(cost.thread_time_ns > least && cost.thread_time_ns.is_finite());
    let thread_times = 60_000.0 * least;
    assert!(cost.measured_threads * summary().wall_ns > thread_times);

    // The reading is outside of the elapsed time, and not in the thread time.
    let row = summary().row("empty").cloned().expect("it was called");
    let elapsed = row.cpu.expect("calls").p50_ns;
    assert!(elapsed < least, "{elapsed} {least}");
    let total = row.thread_time_total_ns.unwrap_or(0.0);
    assert!(total <= row.cpu.expect("calls").total_ns);
}

#[test]
fn the_cost_of_a_call_has_that_of_its_callers() {
    if !measuring() {
        return;
    }
    let fast = cost_of_calls();
    let _profiler = builder().callers(true).init().expect("set up");
    let all = cost_of_calls();
    // Half of the calls had callers, which cost more than the rest of a call.
    assert!(all > 1.2 * fast, "{all} {fast}");
}
