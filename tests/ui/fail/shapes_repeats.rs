use profiler_runtime::measure_execution_time;

#[measure_execution_time(shapes = [x; 2])]
fn linear() {}

fn main() {}
