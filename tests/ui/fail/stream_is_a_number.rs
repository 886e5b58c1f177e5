use profiler_runtime::measure_execution_time;

#[measure_execution_time(stream = 0)]
fn train() {}

fn main() {}
