use profiler_runtime::measure_execution_time;

#[measure_execution_time(sync, sync = false)]
fn train() {}

fn main() {}
