use profiler_runtime::measure_execution_time;

#[measure_execution_time]
type Pair<T> = (T, T);

fn main() {}
