use profiler_runtime::measure_execution_time;

#[measure_execution_time(log_every = 10_000_000_000)]
fn train() {}

fn main() {}
