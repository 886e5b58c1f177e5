use profiler_runtime::measure_execution_time;

#[measure_execution_time(sync(true))]
fn train() {}

fn main() {}
