use profiler_runtime::measure_execution_time;

#[measure_execution_time(nmae = "train", log_every = 0, log, bypass = "no")]
const fn train() {}

#[measure_execution_time(colour = red blue, name = "test")]
fn test() {}

fn main() {}
