use profiler_runtime::measure_execution_time;

#[measure_execution_time(name: "train")]
fn train() {}

fn main() {}
