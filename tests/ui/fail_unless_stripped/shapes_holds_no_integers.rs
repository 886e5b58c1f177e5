use profiler_runtime::measure_execution_time;

#[measure_execution_time(shapes = [x.as_slice()])]
fn linear(x: &Vec<f32>) {}

fn main() {}
