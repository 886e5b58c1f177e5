use profiler_runtime::measure_execution_time;

struct Model;

#[measure_execution_time]
impl Model {
    #[cfg_attr(debug_assertions, measure_execution_time(log_every = 2))]
    fn train(&self) {}
}

fn main() {}
