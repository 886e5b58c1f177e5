use profiler_runtime::measure_execution_time;

#[measure_execution_time(stream = count)]
fn train(count: usize) {}

fn main() {}
