use profiler_runtime::measure_execution_time;

#[measure_execution_time(synchronize)]
fn train() {}

fn main() {}
