use profiler_runtime::measure_execution_time;

#[measure_execution_time(per_instance, name = "train")]
fn train<T>(_: T) {}

fn main() {}
