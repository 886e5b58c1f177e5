use profiler_runtime::measure_execution_time;

#[measure_execution_time(sync, cuda_graph)]
fn train() {}

fn main() {}
