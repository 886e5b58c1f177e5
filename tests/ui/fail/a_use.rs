use profiler_runtime::measure_execution_time;

#[measure_execution_time]
pub use std::mem::swap;

fn main() {}
