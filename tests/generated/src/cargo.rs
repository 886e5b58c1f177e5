//! Calls cargo and reads what the compiler says about each function.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::Error;

/// A warning or an error in one of the modules.
pub(crate) struct Diagnostic {
    pub(crate) package: String,
    pub(crate) measured: bool,
    pub(crate) line: usize,
    pub(crate) is_error: bool,
    /// The name of the lint, or the code of the error.
    pub(crate) code: String,
    pub(crate) rendered: String,
}

#[derive(Default)]
pub(crate) struct Build {
    pub(crate) succeeded: bool,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) programs: BTreeMap<String, PathBuf>,
    /// Errors outside of the modules.
    others: String,
}

pub(crate) fn has_clippy() -> bool {
    let version = cargo().args(["clippy", "--version"]).output();
    version.is_ok_and(|output| output.status.success())
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

/// Calls a command of cargo in the workspace.
///
/// # Errors
///
/// Returns an error if cargo cannot be run, or fails for another reason than a generated function.
pub(crate) fn call(command: &str, root: &Path, strip: bool) -> Result<Build, Error> {
    let output = cargo()
        .current_dir(root)
        .args([command, "--workspace", "--quiet", "--keep-going"])
        .args(["--message-format", "json"])
        .args(strip.then_some("--features=e2018/strip,e2021/strip,e2024/strip"))
        .stderr(Stdio::piped())
        .output()
        .map_err(Error::io("run cargo in", root))?;
    let mut build = Build {
        succeeded: output.status.success(),
        ..Build::default()
    };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message = serde_json::from_str(line)
            .map_err(|error| Error::Json(format!("cargo {command}"), error))?;
        build.take(&message);
    }
    let explained = build
        .diagnostics
        .iter()
        .any(|diagnostic| diagnostic.is_error);
    if build.succeeded || explained {
        return Ok(build);
    }
    eprintln!(
        "{}{}",
        build.others,
        String::from_utf8_lossy(&output.stderr)
    );
    Err(Error::Cargo(command.to_owned()))
}

impl Build {
    fn take(&mut self, message: &Value) {
        let package = text(&message["target"]["name"]);
        if let Some(path) = message["executable"].as_str() {
            self.programs.insert(package, PathBuf::from(path));
            return;
        }
        let said = &message["message"];
        let is_error = said["level"] == "error";
        if !is_error && said["level"] != "warning" {
            return;
        }
        let rendered = text(&said["rendered"]);
        let spans = said["spans"].as_array().map_or(&[][..], Vec::as_slice);
        let primary = spans.iter().filter(|span| span["is_primary"] == true);
        match primary.into_iter().find_map(place) {
            Some((measured, line)) => self.diagnostics.push(Diagnostic {
                package,
                measured,
                line,
                is_error,
                code: text(&said["code"]["code"]),
                rendered,
            }),
            None if is_error => self.others += &rendered,
            None => {}
        }
    }
}

/// Returns `true` if a span is in the measured module, and its line: that of the macro call if it
/// is inside a macro.
fn place(span: &Value) -> Option<(bool, usize)> {
    let file = span["file_name"].as_str()?;
    let measured = file.ends_with("src/measured.rs");
    if measured || file.ends_with("src/bare.rs") {
        let line = usize::try_from(span["line_start"].as_u64()?).ok()?;
        return Some((measured, line));
    }
    place(&span["expansion"]["span"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
