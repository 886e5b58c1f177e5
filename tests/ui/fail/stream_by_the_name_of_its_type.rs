use profiler_runtime::measure_execution_time;

#[measure_execution_time(cuda_stream = &STREAM)]
fn train() {}

fn main() {}
