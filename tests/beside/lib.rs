//! Builds a program of one of these folders and runs it with a simulated driver with a virtual
//! clock.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use profiler_simulated_driver::{Installation, Installed, Report, SimulatorError};
use serde_json::Value;

/// The output of a program, and the driver's report about it.
#[derive(Clone, Debug)]
pub struct Run {
    /// The summary that the program printed as JSON.
    pub summary: Value,
    /// The durations of its kernels according to the driver.
    pub truth: Report,
}

impl Run {
    /// Returns the row of a name.
    pub fn row(&self, name: &str) -> Option<&Value> {
        let rows = self.summary["rows"].as_array()?;
        rows.iter().find(|row| row["name"] == name)
    }
}

/// The reason why a program failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Failure {
    #[error("the driver: {0}")]
    Driver(#[from] SimulatorError),
    #[error("{what}: {source}")]
    Io {
        what: String,
        source: std::io::Error,
    },
    #[error("{what} failed:\n{output}")]
    Command { what: String, output: String },
    #[error("{what} is not JSON: {source}")]
    Json {
        what: String,
        source: serde_json::Error,
    },
    #[error("cargo built no program in {folder}")]
    NoProgram { folder: PathBuf },
}

/// Builds the program in `folder` and runs it. All programs share the folder `target`, and so the
/// dependencies that they have in common. The driver and other files are written to `scratch`.
///
/// # Errors
///
/// Returns an error with all output if the program cannot be built or fails.
pub fn build_and_run(folder: &str, target: &Path, scratch: &Path) -> Result<Run, Failure> {
    let driver = Installation::new(&scratch.join(folder)).create()?;
    let program = build(
        folder,
        target,
        &stubs(&driver, &scratch.join(folder).join("stubs"))?,
    )?;
    let truth = scratch.join(folder).join("report.json");
    let script = format!("clock virtual\nreport-at-exit {}", truth.display());
    let mut command = driver.command(&program, &script);
    without_settings(&mut command);
    let output = output(&mut command, folder)?;
    let summary = serde_json::from_slice(&output.stdout).map_err(|source| Failure::Json {
        what: format!("the output of {folder}"),
        source,
    })?;
    Ok(Run {
        summary,
        truth: Report::read(&truth)?,
    })
}

/// Builds the program by its manifest alone, as its user does.
fn build(folder: &str, target: &Path, stubs: &Path) -> Result<PathBuf, Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--locked",
            "--message-format=json-render-diagnostics",
        ])
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        // Not `CUDA_HOME`: cudarc would be rebuilt whenever that changes.
        .env("LIBRARY_PATH", stubs);
    let output = output(&mut command, "cargo build")?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let program = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    program.ok_or(Failure::NoProgram { folder })
}

/// Creates a folder with stubs of CUDA's libraries to link against, like the toolkit's
/// `lib64/stubs`.
///
/// As in the toolkit, the soname of the driver's stub is `libcuda.so.1`, so programs load that
/// file.
fn stubs(driver: &Installed, folder: &Path) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(folder).map_err(|source| io(&folder.display(), source))?;
    let mut nm = Command::new("nm");
    nm.args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(driver.library());
    let symbols = output(&mut nm, "nm")?.stdout;
    let symbols = String::from_utf8_lossy(&symbols);
    let functions: Vec<String> = symbols
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|symbol| symbol.starts_with("cu"))
        .map(|symbol| format!("void {symbol}(void) {{}}"))
        .collect();
    link(folder, "cuda", "libcuda.so.1", &functions.join("\n"))?;
    for library in ["cublas", "cublasLt", "curand", "nvrtc"] {
        link(folder, library, &format!("lib{library}.so"), "")?;
    }
    Ok(folder.to_owned())
}

fn link(folder: &Path, library: &str, called: &str, source: &str) -> Result<(), Failure> {
    let file = folder.join(format!("{library}.c"));
    std::fs::write(&file, source).map_err(|source| io(&file.display(), source))?;
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-o"])
        .arg(folder.join(format!("lib{library}.so")))
        .arg(format!("-Wl,-soname,{called}"))
        .arg(file);
    output(&mut cc, "cc").map(drop)
}

/// Removes settings of the user who runs the tests, which must not affect the programs.
fn without_settings(command: &mut Command) {
    let settings = std::env::vars_os().map(|(name, _)| name);
    for name in settings.filter(|name| name.to_string_lossy().starts_with("PROFILER_")) {
        command.env_remove(name);
    }
}

fn output(command: &mut Command, what: &str) -> Result<Output, Failure> {
    let output = command.output().map_err(|source| io(&what, source))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(Failure::Command {
        what: format!("{what} ({})", output.status),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

fn io(what: &dyn std::fmt::Display, source: std::io::Error) -> Failure {
    Failure::Io {
        what: what.to_string(),
        source,
    }
}
