//! Have each measurement as a `tracing` event, beside the events you have already.
//!
//! ```text
//! cargo run --release --example tracing_logger
//! ```

use std::error::Error;

use profiler_examples::digits::Digits;
use profiler_runtime::{TracingLogger, measure_execution_time, summary};

// Without a `log` of its own, a call goes to the loggers that the program sets up in `main`.
#[measure_execution_time]
fn standardise(digits: &Digits) -> Digits {
    digits.standardised()
}

// With one, it goes there instead. One event for every tenth call is enough for a short function;
// calls and times in the table are of all calls.
#[measure_execution_time(log = TracingLogger, every = 10)]
fn brightest(digits: &Digits, number: usize) -> f32 {
    digits.image(number).iter().copied().fold(0.0, f32::max)
}

fn main() -> Result<(), Box<dyn Error>> {
    // Any subscriber will do. The profiler's events have the level INFO, the target
    // `profiler_runtime` and the fields name, cpu_ms and step; what it has to say about itself (a
    // variable that it does not understand, a logger that fails) comes as warnings of that target.
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

    // Events come from the profiler's thread, a little later. The guard waits for them when it is
    // dropped, at the end of `main` or here.
    drop(profiler);
    println!(
        "\nthe brightest pixel of fifty: {brightest:.2}\n\n{}",
        summary()
    );
    Ok(())
}
