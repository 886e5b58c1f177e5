use profiler_runtime::measure_execution_time;

const NUMBER: u8 = 1;

#[measure_execution_time(name = NUMBER)]
fn train() {}

fn main() {}
