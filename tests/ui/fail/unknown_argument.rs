use profiler_runtime::measure_execution_time;

#[measure_execution_time(nmae = "train")]
fn train() {}

fn main() {}
