use profiler_runtime::measure_execution_time;

#[measure_execution_time(synchronise)]
fn train() {}

fn main() {}
