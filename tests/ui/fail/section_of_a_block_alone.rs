use profiler_runtime::measure_execution_time_context;

fn main() {
    let sum = measure_execution_time_context!({ 1 + 1 });
    assert_eq!(sum, 2);
}
