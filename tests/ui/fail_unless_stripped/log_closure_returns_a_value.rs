use profiler_runtime::measured;

#[measured(log = |_, milliseconds, _| milliseconds + 1.0)]
fn train() {}

fn main() {}
