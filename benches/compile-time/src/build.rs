//! Timed builds.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use bench_harness::{Outcome, median};

use crate::generate::Twin;

/// Commands of cargo, and what they are called with.
pub(crate) const MODES: [(&str, &[&str]); 3] = [
    ("cargo check", &["check"]),
    ("cargo build", &["build"]),
    ("cargo build --release", &["build", "--release"]),
];

/// The seconds that a build took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    wall: f64,
    /// The processor time of all its processes and threads, which other work on the machine affects
    /// least. `None` if `/proc` does not show it.
    processor: Option<f64>,
}

/// Returns the medians over some builds: elapsed time, and processor time.
pub(crate) fn medians(builds: &[Took]) -> (f64, Option<f64>) {
    let wall: Vec<f64> = builds.iter().map(|took| took.wall).collect();
    let processor: Option<Vec<f64>> = builds.iter().map(|took| took.processor).collect();
    (median(&wall), processor.map(|seconds| median(&seconds)))
}

/// Builds everything once, so that the dependencies are ready.
pub(crate) fn dependencies(folder: &Path, arguments: &[&str]) -> Outcome<()> {
    run(cargo(folder).args(arguments).arg("--workspace")).map(drop)
}

/// Rebuilds one twin without its dependencies.
pub(crate) fn twin(folder: &Path, twin: Twin, arguments: &[&str]) -> Outcome<Took> {
    let mut clean = cargo(folder);
    clean.args(["clean", "--package", twin.package]);
    // Selects the profile.
    run(clean.args(&arguments[1..]))?;
    let mut build = cargo(folder);
    run(build.args(arguments).args(["--package", twin.package]))
}

/// Returns a cargo command that works in `folder`, whatever the environment says.
fn cargo(folder: &Path) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .stdin(Stdio::null());
    command
}

/// Runs a command of cargo until it ends.
pub(crate) fn run(command: &mut Command) -> Outcome<Took> {
    let processor = processor_of_children();
    let start = Instant::now();
    let output = command.output();
    let output = output
        .map_err(|error| format!("cannot run cargo: {error}; install it, or add it to the path"))?;
    let wall = start.elapsed().as_secs_f64();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{command:?}` failed:\n{said}").into());
    }
    let processor = processor.and_then(|before| Some(processor_of_children()? - before));
    Ok(Took { wall, processor })
}

/// Returns the processor seconds of all child processes that have ended.
fn processor_of_children() -> Option<f64> {
    /// The unit in which Linux reports times to programs.
    const PER_SECOND: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name may contain spaces; it ends at the last parenthesis.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(13);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / PER_SECOND)
}
