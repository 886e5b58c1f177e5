use profiler_runtime::measure_execution_time;

#[measure_execution_time(graph = true)]
fn train() {}

fn main() {}
