use profiler_runtime::measure_execution_time;

#[measure_execution_time(nmae = "train", every = 0, log, bypass = "no")]
const fn train() {}

fn main() {}
