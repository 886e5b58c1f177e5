use profiler_runtime::measure_execution_time;

#[measure_execution_time("train")]
fn train() {}

fn main() {}
