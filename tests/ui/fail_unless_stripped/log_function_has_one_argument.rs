use std::sync::Arc;

use profiler_runtime::measured;

fn print(milliseconds: f64) {
    println!("{milliseconds}");
}

#[measured(log = print)]
fn by_function() {}

#[measured(log = Arc::new(|milliseconds: f64| println!("{milliseconds}")))]
fn by_arc() {}

fn main() {}
