use profiler_runtime::measure_execution_time;

#[measure_execution_time]
pub struct Model {
    weights: Vec<f32>,
}

fn main() {}
