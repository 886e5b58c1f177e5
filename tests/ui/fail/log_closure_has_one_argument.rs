use profiler_runtime::measured;

#[measured(log = |milliseconds| println!("{milliseconds}"))]
fn train() {}

fn main() {}
