use profiler_runtime::measured;

#[measured(parent = number)]
fn chunk(number: u32) {
    let _ = number;
}

fn main() {}
