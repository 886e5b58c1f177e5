//! A program without set-up code: `PROFILER_SUMMARY` alone makes it write a table at its end.

use profiler_runtime::measure_execution_time;

#[measure_execution_time]
fn work() -> usize {
    std::hint::black_box(6) * 7
}

fn main() {
    assert_eq!(work(), 42);
}
