use profiler_runtime::measure_execution_time;

#[measure_execution_time(name = "train", log_every = 2, name = "test")]
fn train() {}

fn main() {}
