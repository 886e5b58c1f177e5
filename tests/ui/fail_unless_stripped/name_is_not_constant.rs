use profiler_runtime::measure_execution_time;

#[measure_execution_time(name = text)]
fn train(text: &'static str) {}

fn main() {}
