use profiler_runtime::measure_execution_time;

#[measure_execution_time]
mod inside {
    #[measure_execution_time(skip, log_every = 2)]
    fn train() {}
}

fn main() {}
