use profiler_runtime::measure_execution_time;

#[measure_execution_time(stream =)]
fn train() {}

fn main() {}
