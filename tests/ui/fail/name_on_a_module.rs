use profiler_runtime::measure_execution_time;

#[measure_execution_time(name = "model", log_every = 2)]
mod model {
    fn train() {}
}

fn main() {}
