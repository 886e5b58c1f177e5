use profiler_runtime::measure_execution_time;

#[measure_execution_time(blocking = true)]
fn train() {}

fn main() {}
