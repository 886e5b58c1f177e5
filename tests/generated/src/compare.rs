//! Runs the programs and reads which functions differed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::Error;
use crate::package::Package;

/// A function that the attribute changes.
pub(crate) struct Finding {
    pub(crate) edition: u16,
    pub(crate) index: usize,
    /// What kind of function and difference this is. Only some findings of a class are printed.
    pub(crate) class: String,
    /// The function and how it differs.
    pub(crate) text: String,
}

impl Finding {
    pub(crate) fn new(package: &Package, index: usize, class: &str, how: &str) -> Self {
        let function = package.function(index);
        let kind = function.map_or(String::new(), |function| format!("{:?}", function.kind));
        let source = function.map_or("", |function| &function.source);
        Self {
            edition: package.edition,
            index,
            class: format!("{class} ({kind})"),
            text: format!("{source}{how}"),
        }
    }
}

/// Runs a program. With `summary`, the profiler is on and writes this file.
///
/// # Errors
///
/// Returns an error if the program cannot be run, or the summary cannot be read.
pub(crate) fn run(
    mode: &str,
    program: &Path,
    package: &Package,
    summary: Option<&Path>,
) -> Result<(Vec<Finding>, BTreeSet<usize>), Error> {
    let mut command = Command::new(program);
    match summary {
        Some(file) => command.env("PROFILER_SUMMARY", file),
        None => command.env("PROFILER_ENABLED", "0"),
    };
    let output = command
        .env_remove("RUST_BACKTRACE")
        .stderr(Stdio::inherit())
        .output()
        .map_err(Error::io("run", program))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut findings: Vec<Finding> = Vec::new();
    let mut ran = BTreeSet::new();
    let mut latest = None;
    for line in text.lines() {
        let index = |text: &str| text.split(' ').next().and_then(|word| word.parse().ok());
        if let Some(index) = line.strip_prefix("ran ").and_then(index) {
            ran.insert(index);
        } else if let Some(rest) = line.strip_prefix("differs ") {
            let differs = index(rest).unwrap_or_default();
            // The first difference of a function explains the others.
            let first = findings
                .last()
                .is_none_or(|finding| finding.index != differs);
            latest = first.then_some(differs);
            if first {
                let how = format!("{mode}: {rest}\n");
                findings.push(Finding::new(package, differs, "another log", &how));
            }
        } else if let (Some(_), Some(finding)) = (latest, findings.last_mut()) {
            if let Some((bare, measured)) = line.split_once(" | ")
                && !finding.class.contains('`')
            {
                let [bare, measured] = [bare, measured].map(without_numbers);
                let parts = [": `", &measured, "` instead of `", &bare, "`"];
                finding.class.extend(parts);
            }
            finding.text += line;
            finding.text.push('\n');
        }
    }
    let missing = package
        .functions
        .iter()
        .find(|function| !ran.contains(&function.index));
    if let Some(missing) = missing {
        let how = format!(
            "the program ended before the end of this function: {}\n",
            output.status
        );
        findings.push(Finding::new(package, missing.index, "did not run", &how));
    }
    Ok((findings, ran))
}

/// Returns an entry of a log with the names that it has in all functions.
fn without_numbers(entry: &str) -> String {
    let digits = |letter: char| letter.is_ascii_digit();
    entry.trim().replace(digits, "#").replace("##", "#")
}

/// Returns the functions of which a summary counted a call.
///
/// # Errors
///
/// Returns an error if the summary cannot be read.
pub(crate) fn counted(summary: &Path) -> Result<BTreeSet<usize>, Error> {
    let bytes = fs::read(summary).map_err(Error::io("read", summary))?;
    let parsed: Value = serde_json::from_slice(&bytes)
        .map_err(|error| Error::Json(summary.display().to_string(), error))?;
    let rows = parsed["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let calls = rows.iter().filter(|row| row["calls"].as_u64() > Some(0));
    let names = calls.filter_map(|row| row["name"].as_str()?.rsplit("::").next());
    Ok(names
        .filter_map(|name| name.strip_prefix('f')?.parse().ok())
        .collect())
}
