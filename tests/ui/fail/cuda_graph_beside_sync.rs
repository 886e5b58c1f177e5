use profiler_runtime::measure_execution_time;

#[measure_execution_time(cuda_graph = true, log_every = 2, sync = true)]
fn train() {}

fn main() {}
