use profiler_runtime::measure_execution_time;

#[measure_execution_time(on = &STREAM)]
fn train() {}

fn main() {}
