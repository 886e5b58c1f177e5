use profiler_runtime::measure_execution_time;

#[measure_execution_time(colour = "red")]
fn train() {}

fn main() {}
