use profiler_runtime::measure_execution_time;

#[measure_execution_time(captured, captured)]
fn train() {}

fn main() {}
