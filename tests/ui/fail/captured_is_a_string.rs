use profiler_runtime::measure_execution_time;

#[measure_execution_time(captured = "graph")]
fn train() {}

fn main() {}
