use profiler_runtime::measure_execution_time;

#[measure_execution_time(capture)]
fn train() {}

fn main() {}
