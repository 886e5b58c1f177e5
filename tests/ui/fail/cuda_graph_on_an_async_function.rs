use profiler_runtime::measure_execution_time;

#[measure_execution_time(cuda_graph = true)]
async fn train() {}

fn main() {}
