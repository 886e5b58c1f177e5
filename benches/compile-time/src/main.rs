//! Measures what a thousand annotated functions add to the compile time of a crate.
//!
//! It generates two crates that differ only in the attributes, and builds them alternately, each
//! without its dependencies.

mod build;
mod generate;
mod report;
mod runtime;

use std::path::PathBuf;

use bench_harness::{Machine, Options};
use serde::Serialize;

use build::Mode;
use generate::Twin;
use report::Row;

#[derive(Serialize)]
struct Report {
    machine: Machine,
    functions: usize,
    rows: Vec<Row>,
    runtime: runtime::Report,
}

/// The builds of each twin and mode, unless `--rounds` is given.
const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::from_command_line()?;
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let machine = Machine::this();
    println!("{machine}\n");
    let folder = folder(&options)?;
    generate::workspace(&folder)?;
    let mut rows = Vec::new();
    for mode in Mode::ALL {
        let (mut bare, mut annotated) = (Vec::new(), Vec::new());
        build::dependencies(&folder, mode)?;
        for round in 0..rounds {
            // Alternate which twin is first.
            for turn in 0..2 {
                if (round + turn) % 2 == 0 {
                    bare.push(build::twin(&folder, Twin::Bare, mode)?);
                } else {
                    annotated.push(build::twin(&folder, Twin::Annotated, mode)?);
                }
            }
        }
        let row = Row::new(mode, &bare, &annotated);
        println!("{row}");
        rows.push(row);
    }
    println!("\n{}", report::table(&rows));
    let runtime = runtime::Report::measure(&folder)?;
    println!("{runtime}");
    options.write_json(&Report {
        machine,
        functions: generate::FUNCTIONS,
        rows,
        runtime,
    })?;
    Ok(())
}

/// Returns the folder for the crates: the argument, or a temporary folder that is deleted at the
/// end.
fn folder(options: &Options) -> std::io::Result<PathBuf> {
    let folder = options.rest.first().map_or_else(
        || std::env::temp_dir().join("profiler-compile-time"),
        PathBuf::from,
    );
    std::fs::create_dir_all(&folder)?;
    folder.canonicalize()
}
