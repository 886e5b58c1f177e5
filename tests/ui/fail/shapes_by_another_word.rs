use profiler_runtime::measure_execution_time;

#[measure_execution_time(input_shapes = [x])]
fn linear() {}

fn main() {}
