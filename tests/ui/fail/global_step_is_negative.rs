use profiler_runtime::measure_execution_time;

#[measure_execution_time(global_step = -1)]
fn train() {}

fn main() {}
