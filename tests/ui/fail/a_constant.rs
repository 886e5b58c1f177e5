use profiler_runtime::measure_execution_time;

#[measure_execution_time]
pub const LIMIT: usize = 3;

fn main() {}
