use profiler_runtime::measure_execution_time_context;

fn main() {
    let sum = measure_execution_time_context!("load", log_every = 0, { 1 + 1 });
    assert_eq!(sum, 2);
}
