use profiler_runtime::measure_execution_time;

#[measure_execution_time(log = "runs")]
fn train() {}

fn main() {}
