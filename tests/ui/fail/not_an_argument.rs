use profiler_runtime::measure_execution_time;

#[measure_execution_time(5)]
fn train() {}

fn main() {}
