//! Measures what a thousand annotated functions add to the compile time of a crate, and what the dependency does.
//!
//! It generates two crates that differ only in the attributes, and builds them alternately, each
//! without its dependencies.

mod build;
mod generate;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bench_harness::{Options, Outcome, Report, Table, row};

use build::{MODES, medians};
use generate::TWINS;

/// The builds of each twin and mode, unless `--rounds` is given.
const ROUNDS: usize = 7;

fn main() -> Outcome<()> {
    let options = Options::from_command_line()?;
    let mut report = Report::begin();
    let folder = folder(&options)?;
    generate::workspace(&folder)?;
    report.show(twins(&folder, options.rounds.unwrap_or(ROUNDS))?);
    report.show(runtime(&folder)?);
    report.end(&options)
}

/// Returns the folder for the crates: the argument, or one in the folder for temporary files.
fn folder(options: &Options) -> std::io::Result<PathBuf> {
    let folder = options.rest.first().map_or_else(
        || std::env::temp_dir().join("profiler-compile-time"),
        PathBuf::from,
    );
    fs::create_dir_all(&folder)?;
    folder.canonicalize()
}

/// Builds both crates alternately: medians, and the ratio of the annotated one to the bare one.
fn twins(folder: &Path, rounds: usize) -> Outcome<Table> {
    let mut table = Table::new(
        format!("seconds to build {} functions", generate::FUNCTIONS),
        "command | bare .2 | annotated .2 | ratio .3 \
         | bare, processor .2 | annotated .2 | ratio .3 | bound",
    );
    for (name, arguments) in MODES {
        let mut builds = TWINS.map(|_| Vec::new());
        build::dependencies(folder, arguments)?;
        for round in 0..rounds {
            // Alternate which twin is first.
            for at in [round % 2, 1 - round % 2] {
                builds[at].push(build::twin(folder, TWINS[at], arguments)?);
            }
        }
        let [(bare, bare_processor), (annotated, processor)] = builds.map(|all| medians(&all));
        let both = processor.zip(bare_processor);
        let ratio = both.map(|(with, without)| with / without);
        println!("{name}: {:.2} times as long", annotated / bare);
        row!(
            table,
            name,
            bare,
            annotated,
            annotated / bare,
            bare_processor,
            processor,
            ratio,
            "<= 1.15",
        );
    }
    println!();
    Ok(table)
}

/// Builds the dependency itself, from nothing, and counts the crates that this compiles on this machine.
fn runtime(folder: &Path) -> Outcome<Table> {
    const BUILDS: usize = 3;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = || {
        let mut command = Command::new("cargo");
        command.current_dir(&root);
        command
    };
    let target = folder.join("runtime");
    let mut builds = Vec::new();
    for _ in 0..BUILDS {
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        let mut command = cargo();
        command
            .args(["build", "--release", "--package", "profiler-runtime"])
            .env("CARGO_TARGET_DIR", &target);
        builds.push(build::run(&mut command)?);
    }
    let tree = cargo()
        .args(["tree", "--package", "profiler-runtime"])
        .args(["--edges", "normal,build", "--prefix", "none"])
        .args(["--format", "{p}"])
        .output()?;
    let tree = String::from_utf8_lossy(&tree.stdout);
    // Count each name and version once; the rest of a line differs between uses of the same crate.
    let crates: BTreeSet<Vec<&str>> = tree
        .lines()
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    let (wall, processor) = medians(&builds);
    let title = "a clean build of profiler-runtime (default features, release)";
    let mut table = Table::new(title, "| seconds .1 | processor .1 | crates");
    row!(table, "median", wall, processor, crates.len());
    Ok(table)
}
