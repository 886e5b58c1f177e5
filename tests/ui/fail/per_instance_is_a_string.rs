use profiler_runtime::measure_execution_time;

#[measure_execution_time(per_instance = "yes")]
fn train<T>(_: T) {}

fn main() {}
