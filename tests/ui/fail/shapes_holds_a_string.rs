use profiler_runtime::measure_execution_time;

#[measure_execution_time(shapes = [x, "x"])]
fn linear() {}

fn main() {}
