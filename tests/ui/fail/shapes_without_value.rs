use profiler_runtime::measure_execution_time;

#[measure_execution_time(shapes)]
fn linear() {}

fn main() {}
