use profiler_runtime::measure_execution_time;

const OFTEN: u32 = 10;

#[measure_execution_time(log_every = OFTEN)]
fn train() {}

fn main() {}
