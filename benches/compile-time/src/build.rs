//! Builds, timed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Serialize;

use crate::generate::Twin;

/// What is asked of cargo.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Check,
    Debug,
    Release,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Check, Self::Debug, Self::Release];

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Check => &["check"],
            Self::Debug => &["build"],
            Self::Release => &["build", "--release"],
        }
    }

    /// What picks the profile out, for commands that build nothing.
    fn profile(self) -> &'static [&'static str] {
        match self {
            Self::Check | Self::Debug => &[],
            Self::Release => &["--release"],
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Check => "cargo check",
            Self::Debug => "cargo build",
            Self::Release => "cargo build --release",
        }
    }
}

/// Seconds that a build took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) wall: f64,
    /// Of all its processes and threads: what other work on the machine disturbs least. `None` where
    /// the system does not tell it in `/proc`.
    pub(crate) processor: Option<f64>,
}

/// Builds everything, so that the dependencies are ready.
pub(crate) fn dependencies(folder: &Path, mode: Mode) -> Result<(), BuildError> {
    let mut command = cargo(folder);
    run(command.args(mode.arguments()).arg("--workspace")).map(drop)
}

/// Builds one twin from nothing but its dependencies.
pub(crate) fn twin(folder: &Path, twin: Twin, mode: Mode) -> Result<Took, BuildError> {
    let mut clean = cargo(folder);
    clean.args(["clean", "--package", twin.package()]);
    run(clean.args(mode.profile()))?;
    let mut command = cargo(folder);
    command
        .args(mode.arguments())
        .args(["--package", twin.package()]);
    run(&mut command)
}

/// A cargo that works in `folder`, whatever it is told elsewhere.
fn cargo(folder: &Path) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .stdin(Stdio::null());
    command
}

/// A build that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    #[error("cannot run cargo: {0}; install it, or put it into the path")]
    NoCargo(#[from] std::io::Error),
    #[error("`{command}` failed:\n{said}")]
    Failed { command: String, said: String },
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Result<Took, BuildError> {
    let processor = processor_of_children();
    let start = Instant::now();
    let output = command.output()?;
    let wall = start.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err(BuildError::Failed {
            command: format!("{command:?}"),
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    let processor = processor.and_then(|before| Some(processor_of_children()? - before));
    Ok(Took { wall, processor })
}

/// Seconds that ended child processes, and theirs, have had on any processor.
fn processor_of_children() -> Option<f64> {
    /// Linux counts in this unit towards programs, whatever its own clock.
    const PER_SECOND: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name may hold spaces; it ends with the last parenthesis.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(13);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / PER_SECOND)
}
