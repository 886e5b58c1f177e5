use profiler_runtime::measure_execution_time;

#[measure_execution_time(cuda_graph, cuda_graph)]
fn train() {}

fn main() {}
