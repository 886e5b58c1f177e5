use profiler_runtime::measure_execution_time;

#[measure_execution_time(sync, captured)]
fn train() {}

fn main() {}
