use profiler_runtime::measure_execution_time;

#[measure_execution_time(name = "train" log_every = 2)]
fn train() {}

fn main() {}
