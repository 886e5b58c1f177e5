use profiler_runtime::measure_execution_time;

pub trait Layer {
    #[measure_execution_time]
    fn forward(&self) -> f32;
}

fn main() {}
