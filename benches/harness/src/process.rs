//! Processes of a bench: each measures one thing, undisturbed by what others leave behind.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::options::Outcome;

/// Begins the line with the results: what is measured may print lines of its own.
const MARK: &str = "measured: ";

/// Hands the results to the process that has started this one.
///
/// # Errors
///
/// Returns an error if nothing can be written.
pub fn hand_over(results: &impl Serialize) -> Outcome<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{MARK}{}", serde_json::to_string(results)?)?;
    Ok(out.flush()?)
}

/// Runs this program again with the same arguments, as `prepare` says, and returns the results that it
/// [hands over](hand_over).
///
/// # Errors
///
/// Returns an error if the process fails, or hands nothing over.
pub fn measured<T: DeserializeOwned>(command: &mut Command) -> Outcome<T> {
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix(MARK));
    let Some(line) = line.filter(|_| output.status.success()) else {
        return Err(format!("{command:?} ended with {}: {text}", output.status).into());
    };
    Ok(serde_json::from_str(line)?)
}

/// Returns a command that runs this program again, with the same arguments.
///
/// # Errors
///
/// Returns an error if the system does not know this program's file.
pub fn again() -> Outcome<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1));
    Ok(command)
}
