use profiler_runtime::measure_execution_time;

#[measure_execution_time]
pub trait Layer {
    fn forward(&self) {}
}

fn main() {}
