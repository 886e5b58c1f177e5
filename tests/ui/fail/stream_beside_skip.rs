use profiler_runtime::measure_execution_time;

#[measure_execution_time]
mod inside {
    #[measure_execution_time(skip, stream = &STREAM)]
    fn train() {}
}

fn main() {}
