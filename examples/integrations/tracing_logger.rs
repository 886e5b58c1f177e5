//! Emits each measurement as a `tracing` event, among the program's other events.
//!
//! ```text
//! cargo run --release --example tracing_logger
//! ```

use std::error::Error;

use profiler_examples::digits::Digits;
use profiler_runtime::{TracingLogger, measure_execution_time, summary};

// Without a `log` argument, a call is logged to the loggers that the program configures in `main`.
#[measure_execution_time]
fn standardise(digits: &Digits) -> Digits {
    digits.standardised()
}

// With `log`, it is logged there instead. For a short function, every tenth call is enough; calls
// and times in the table include all calls.
#[measure_execution_time(log = TracingLogger, log_every = 10)]
fn brightest(digits: &Digits, number: usize) -> f32 {
    digits.image(number).iter().copied().fold(0.0, f32::max)
}

fn main() -> Result<(), Box<dyn Error>> {
    // Any subscriber works. The profiler's events have the level INFO, the target
    // `profiler_runtime` and the fields name, cpu_ms and step. The profiler's own warnings (an
    // invalid variable, a failing logger) have the same target.
    tracing_subscriber::fmt()
        .with_writer(std::io::stdout)
        .init();

    let profiler = profiler_runtime::builder().logger(TracingLogger).init()?;

    let mut digits = Digits::all();
    for _ in 0..3 {
        digits = standardise(&digits);
    }
    let brightest = (0..50)
        .map(|number| brightest(&digits, number))
        .fold(0.0, f32::max);

    // Events come from the profiler's thread, with a delay. The guard waits for them when it is
    // dropped, at the end of `main` or here.
    drop(profiler);
    println!(
        "\nthe brightest pixel of fifty: {brightest:.2}\n\n{}",
        summary()
    );
    Ok(())
}
