//! Uses a library that annotates its functions, and decides what is measured.
//!
//! The library is `examples/annotated-library`. Its `Cargo.toml` and the top of its `src/lib.rs`
//! explain how to write one. The decision is made here, in the program:
//!
//! ```text
//! cargo run --release --example library_crate
//! PROFILER_ENABLED=0 cargo run --release --example library_crate
//! PROFILER_FILTER='-annotated_library::*' cargo run --release --example library_crate
//! cargo run --release --example library_crate --features profile-details
//! cargo run --release --example library_crate --features strip
//! ```

use std::error::Error;

use profiler_examples::digits::{Digits, SIDE};
use profiler_runtime::{SummaryTarget, measure_execution_time};

#[measure_execution_time]
fn smoothed(digits: &Digits) -> f32 {
    let images = || (0..digits.len()).map(|number| digits.image(number));
    let before: f32 = images()
        .map(|image| annotated_library::roughness(image, SIDE))
        .sum();
    let after: f32 = images()
        .map(|image| annotated_library::smooth(image, SIDE))
        .map(|image| annotated_library::roughness(&image, SIDE))
        .sum();
    after / before
}

fn main() -> Result<(), Box<dyn Error>> {
    // The program configures itself and all its libraries: filters, loggers, and here the table at
    // the end. Without this call, `PROFILER_SUMMARY=stdout` would do the same.
    let _profiler = profiler_runtime::builder()
        .summary(SummaryTarget::Stdout)
        .init()?;

    let ratio = smoothed(&Digits::all());
    println!("smoothing leaves {:.0} % of the roughness", 100.0 * ratio);
    Ok(())
}
