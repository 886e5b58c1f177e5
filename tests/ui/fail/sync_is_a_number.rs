use profiler_runtime::measure_execution_time;

#[measure_execution_time(sync = 1)]
fn train() {}

fn main() {}
