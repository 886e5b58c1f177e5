use profiler_runtime::measure_execution_time;

#[measure_execution_time(log = , log_every = 2)]
fn train() {}

fn main() {}
