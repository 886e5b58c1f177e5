use profiler_runtime::measure_execution_time;

#[measure_execution_time(shapes = [-1])]
fn linear() {}

fn main() {}
