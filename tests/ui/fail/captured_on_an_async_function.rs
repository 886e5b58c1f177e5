use profiler_runtime::measure_execution_time;

#[measure_execution_time(captured = true)]
async fn train() {}

fn main() {}
