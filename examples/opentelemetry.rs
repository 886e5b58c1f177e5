//! Records two steps, and writes them as OpenTelemetry's spans.
//!
//! The file is lines of OTLP in JSON, which the OpenTelemetry collector reads with its receiver `otlpjsonfile`. Each step
//! is a trace.
//!
//! ```text
//! cargo run --release --example opentelemetry [-- FILE]
//! ```

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

use profiler_examples::digits::Digits;
use profiler_runtime::{Profile, Schedule, measure_execution_time};

#[measure_execution_time(name = "load")]
fn load() -> Digits {
    Digits::all()
}

#[measure_execution_time(name = "prepare")]
fn prepare() -> Digits {
    load().standardised()
}

fn main() -> Result<(), Box<dyn Error>> {
    let default = || env::temp_dir().join("window.otlp.jsonl");
    let path = env::args_os().nth(1).map_or_else(default, PathBuf::from);
    let schedule = Schedule::new().active(2).repeat(1);
    let ((), trace) = Profile::builder().schedule(schedule).run(|profile| {
        for _ in 0..2 {
            prepare();
            profile.step();
        }
    });
    trace?.export_otlp(&path)?;
    let spans = fs::read_to_string(&path)?
        .matches("\"startTimeUnixNano\"")
        .count();
    println!("{} has {spans} spans", path.display());
    Ok(())
}
