use profiler_runtime::measure_execution_time;

#[measure_execution_time(crate = "profiler_runtime")]
fn train() {}

fn main() {}
