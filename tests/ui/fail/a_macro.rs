use profiler_runtime::measure_execution_time;

#[measure_execution_time]
macro_rules! twice {
    () => {};
}

fn main() {
    twice!();
}
