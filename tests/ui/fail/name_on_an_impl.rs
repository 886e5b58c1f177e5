use profiler_runtime::measure_execution_time;

struct Model;

#[measure_execution_time(name = "model")]
impl Model {
    fn train(&self) {}
}

fn main() {}
