use profiler_runtime::measure_execution_time;

#[measure_execution_time(cuda_graph = "graph")]
fn train() {}

fn main() {}
