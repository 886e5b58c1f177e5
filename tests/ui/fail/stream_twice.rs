use profiler_runtime::measure_execution_time;

#[measure_execution_time(stream = &STREAM, log_every = 2, stream = &OTHER)]
fn train() {}

fn main() {}
