//! What a thousand annotated functions add to the time that a crate takes to compile.
//!
//! Two crates are generated that differ in the attributes alone, and built in turn, each from nothing
//! but its dependencies.

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

/// Builds of each twin in each mode, unless `--rounds` says otherwise.
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
            // Neither always comes first.
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

/// Where the crates are generated and built: what the command line says, or a folder of the system's
/// for what is not kept.
fn folder(options: &Options) -> std::io::Result<PathBuf> {
    let folder = options.rest.first().map_or_else(
        || std::env::temp_dir().join("profiler-compile-time"),
        PathBuf::from,
    );
    std::fs::create_dir_all(&folder)?;
    folder.canonicalize()
}
