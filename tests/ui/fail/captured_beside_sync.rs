use profiler_runtime::measure_execution_time;

#[measure_execution_time(captured = true, every = 2, sync = true)]
fn train() {}

fn main() {}
