use profiler_runtime::measure_execution_time;

#[measure_execution_time(log_every == 2)]
fn train() {}

fn main() {}
