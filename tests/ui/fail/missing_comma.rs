use profiler_runtime::measure_execution_time;

#[measure_execution_time(name = "train" every = 2)]
fn train() {}

fn main() {}
