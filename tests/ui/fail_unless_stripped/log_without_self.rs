use profiler_runtime::measure_execution_time;

struct Model;

impl Model {
    #[measure_execution_time(log = self.log.clone())]
    fn new() -> Self {
        Self
    }
}

fn main() {}
