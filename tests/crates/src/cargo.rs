//! Calls cargo and parses its output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::Error;
use crate::subject::Subject;
use crate::workspace::Workspace;

/// The result of a build.
#[derive(Debug, Default)]
pub(crate) struct Build {
    pub(crate) tests: Vec<TestBinary>,
    /// The number of warnings by kind, for each crate.
    pub(crate) warnings: BTreeMap<(String, String), usize>,
}

/// A test program.
#[derive(Debug)]
pub(crate) struct TestBinary {
    /// The crate that it belongs to.
    pub(crate) subject: Subject,
    /// The name of its target.
    pub(crate) target: String,
    pub(crate) path: PathBuf,
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for variable in std::env::vars_os().map(|(name, _)| name) {
        if variable.to_string_lossy().starts_with("PROFILER_") {
            command.env_remove(variable);
        }
    }
    // The cargo that runs this tool has set these for this tool.
    command.env_remove("CARGO_TARGET_DIR");
    command
}

/// Returns the output of `cargo metadata` for a package: with `--locked` also for its dependencies,
/// whose sources it downloads, and with `--no-deps` for the package alone.
///
/// # Errors
///
/// Returns an error if cargo fails, for example because the lock file is out of date.
pub(crate) fn metadata(manifest: &Path, option: &str) -> Result<Value, Error> {
    let call = format!("metadata {option}");
    let output = cargo()
        .args(["metadata", option, "--format-version", "1"])
        .arg("--manifest-path")
        .arg(manifest)
        .stderr(Stdio::inherit())
        .output()
        .map_err(Error::io("run cargo for", manifest))?;
    if !output.status.success() {
        return Err(Error::Cargo(call));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Error::Message(call, error))
}

/// Rewrites the lock file of the workspace with the newest versions of its dependencies.
///
/// # Errors
///
/// Returns an error if cargo fails.
pub(crate) fn generate_lock(workspace: &Workspace) -> Result<(), Error> {
    let manifest = workspace.manifest();
    let status = cargo()
        .args(["generate-lockfile", "--manifest-path"])
        .arg(&manifest)
        .status()
        .map_err(Error::io("run cargo for", &manifest))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Cargo("generate-lockfile".to_owned()))
    }
}

/// Builds the tests of the selected crates.
///
/// # Errors
///
/// Returns an error if a crate does not build, or cargo cannot be run.
pub(crate) fn build(workspace: &Workspace, target: &Path) -> Result<Build, Error> {
    let manifest = workspace.manifest();
    let features: Vec<String> = workspace
        .chosen()
        .iter()
        .flat_map(|subject| {
            let of_crate = |feature: &&str| format!("{}/{feature}", subject.name);
            subject.features.iter().map(of_crate).collect::<Vec<_>>()
        })
        .collect();
    // By path: the crates depend on published ones of the same name and version.
    let package = |subject: &Subject| {
        let folder = workspace.folder(subject);
        [
            "--package".into(),
            format!("path+file://{}", folder.display()),
        ]
    };
    let call = "test --no-run";
    let output = cargo()
        .args(["test", "--no-run", "--lib", "--tests", "--quiet"])
        .args(workspace.locked().then_some("--locked"))
        .args(["--message-format", "json-diagnostic-rendered-ansi"])
        .args(workspace.chosen().iter().flat_map(package))
        .arg(format!("--features={}", features.join(",")))
        .arg("--manifest-path")
        .arg(&manifest)
        .arg("--target-dir")
        .arg(target)
        .env("CARGO_INCREMENTAL", "0")
        .stderr(Stdio::inherit())
        .output()
        .map_err(Error::io("run cargo for", &manifest))?;
    let mut build = Build::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message =
            serde_json::from_str(line).map_err(|error| Error::Message(call.to_owned(), error))?;
        build.take(workspace, &message);
    }
    if output.status.success() {
        Ok(build)
    } else {
        Err(Error::Cargo(call.to_owned()))
    }
}

impl Build {
    /// Processes a message of cargo: a built test, a warning, or an error, which is printed.
    fn take(&mut self, workspace: &Workspace, message: &Value) {
        let manifest = message["manifest_path"].as_str().map(Path::new);
        let folder = manifest.and_then(Path::parent);
        let subject = workspace
            .chosen()
            .iter()
            .find(|subject| folder == Some(&workspace.folder(subject)));
        let Some(subject) = subject else { return };
        match message["reason"].as_str() {
            Some("compiler-artifact") => {
                if let Some(path) = message["executable"].as_str() {
                    self.tests.push(TestBinary {
                        subject: subject.clone(),
                        target: text(&message["target"]["name"]),
                        path: PathBuf::from(path),
                    });
                }
            }
            Some("compiler-message") => {
                let said = &message["message"];
                if said["level"] == "error" {
                    eprintln!("{}", text(&said["rendered"]));
                } else if said["level"] == "warning" {
                    let key = (subject.name.clone(), text(&said["code"]["code"]));
                    *self.warnings.entry(key).or_default() += 1;
                }
            }
            _ => {}
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
