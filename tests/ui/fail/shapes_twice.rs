use profiler_runtime::measure_execution_time;

#[measure_execution_time(shapes = [x], shapes = [x])]
fn linear() {}

fn main() {}
