//! Turns measuring on and off at run time: for all code, a part of it, single calls, or by name.
//!
//! A call that is not measured costs one load and a branch. The variables `PROFILER_ENABLED` and
//! `PROFILER_FILTER` do the same without a change to the program, and override its initial
//! settings.
//!
//! ```text
//! cargo run --release --example switch_at_run_time
//! PROFILER_ENABLED=0 cargo run --release --example switch_at_run_time
//! PROFILER_FILTER='*::infer' cargo run --release --example switch_at_run_time
//! ```

use std::error::Error;

use profiler_examples::digits::Digits;
use profiler_examples::network::Network;
use profiler_examples::random::Random;
use profiler_runtime::{is_enabled, measure_execution_time, pause, set_enabled, summary};

#[measure_execution_time]
fn infer(network: &Network, digits: &Digits) -> usize {
    network.forward(digits).correct(digits)
}

// `bypass` is evaluated at each call: here it excludes the first calls, which have cold caches.
#[measure_execution_time(bypass = step < 3)]
fn train(network: &mut Network, digits: &Digits, step: usize) {
    network.learn(digits, 0.1 / (10.0 + step as f32));
}

#[measure_execution_time]
fn load() -> Digits {
    Digits::all().standardised()
}

/// Returns how many calls of a function were counted so far.
fn counted(function: &str) -> u64 {
    let summary = summary();
    let name = format!("{}::{function}", module_path!());
    summary.row(&name).map_or(0, |row| row.calls)
}

fn main() -> Result<(), Box<dyn Error>> {
    // Globs over names; `-` excludes. Names are paths: `switch_at_run_time::load`.
    let _profiler = profiler_runtime::builder().filter("*,-*::load").init()?;
    println!(
        "at the start, measuring is {}",
        if is_enabled() { "on" } else { "off" }
    );

    let digits = load();
    println!(
        "load, excluded by the filter: 1 call, {} counted",
        counted("load")
    );

    let mut network = Network::new(32, &mut Random::seeded(1));
    for step in 0..10 {
        train(&mut network, &digits, step);
    }
    println!(
        "train, bypassed in its first 3 steps: 10 calls, {} counted",
        counted("train")
    );

    // Turns measuring off on all threads while the closure runs, for example during a warm-up.
    pause(|| infer(&network, &digits));
    println!(
        "infer, inside of pause: 1 call, {} counted",
        counted("infer")
    );

    // Turns measuring off until it is turned on again. A long-running program may do this on a
    // signal or a request. It takes effect immediately on all threads, and an open scope ends as it
    // began.
    let before = is_enabled();
    set_enabled(false);
    infer(&network, &digits);
    println!(
        "infer, after set_enabled(false): 2 calls, {} counted",
        counted("infer")
    );
    set_enabled(before);
    infer(&network, &digits);
    println!(
        "infer, after setting it back: 3 calls, {} counted",
        counted("infer")
    );

    println!("\n{}", summary());
    Ok(())
}
