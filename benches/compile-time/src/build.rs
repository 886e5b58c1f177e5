//! Timed builds.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Serialize;

use crate::generate::Twin;

/// A command of cargo.
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

    /// The option that selects the profile in commands that do not build.
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

/// The seconds that a build took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) wall: f64,
    /// The processor time of all its processes and threads, which other work on the machine affects
    /// least. `None` if `/proc` does not show it.
    pub(crate) processor: Option<f64>,
}

/// Builds everything once, so that the dependencies are ready.
pub(crate) fn dependencies(folder: &Path, mode: Mode) -> Result<(), BuildError> {
    let mut command = cargo(folder);
    run(command.args(mode.arguments()).arg("--workspace")).map(drop)
}

/// Rebuilds one twin without its dependencies.
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

/// Returns a cargo command that works in `folder`, whatever the environment says.
fn cargo(folder: &Path) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .stdin(Stdio::null());
    command
}

/// A failed build.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    #[error("cannot run cargo: {0}; install it, or add it to the path")]
    NoCargo(#[from] std::io::Error),
    #[error("`{command}` failed:\n{said}")]
    Failed { command: String, said: String },
}

/// Runs a command until it ends.
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
