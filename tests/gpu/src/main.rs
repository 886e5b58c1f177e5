//! The tests of the profiler that need a real GPU, in one program that needs only the driver.
//!
//! `docs/gpu.md` explains how to build it, what to copy, how to run it, and what its figures mean.

mod answers;
mod checks;
mod child;
mod cublas;
mod cudart;
mod cupti;
mod device;
mod driver;
mod figures;
mod findings;
mod graph;
#[cfg(test)]
mod headers;
mod libraries;
mod machine;
mod measured;
mod memory;
mod neighbours;
mod nvml;
mod nvrtc;
mod own;
mod runner;
mod table;
mod trouble;
mod window;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use runner::Wanted;

const USAGE: &str = "gpu-suite [PATH] [--only TEXT] [--limit SECONDS] | --list | --table PATH

  PATH             where the JSON goes; to standard output where none is given
  --only TEXT      only checks whose theme or name contains the text
  --limit SECONDS  after which the run ends (450); no check begins in the last quarter of it
  --list           what is checked, and with which tolerance
  --table PATH     prints the figures of such a JSON as tables in Markdown

Ends with `N passed, N failed, N skipped`. The exit code is 0, 1 where a check failed, 2 for a command
line that is not understood, and 77 where there is no GPU.";

/// The command line of this process.
enum Role {
    Suite(Wanted),
    List,
    Help,
    Table(PathBuf),
    Child(String),
}

fn main() -> ExitCode {
    give_streams_queues_of_their_own();
    let role = match parse(std::env::args_os().skip(1)) {
        Ok(role) => role,
        Err(problem) => {
            eprintln!("{problem}\n\n{USAGE}");
            return ExitCode::from(runner::NOT_UNDERSTOOD);
        }
    };
    match role {
        Role::Help => println!("{USAGE}"),
        Role::List => list(),
        Role::Table(path) => return print_tables(&path),
        Role::Child(name) => return child::play(checks::PARTS, &name),
        Role::Suite(wanted) => {
            if let Some(variable) = disturbing() {
                eprintln!("{variable} changes what is measured: unset it");
                return ExitCode::from(runner::NOT_UNDERSTOOD);
            }
            return runner::run(wanted, checks::THEMES);
        }
    }
    ExitCode::SUCCESS
}

/// With the driver's default of eight queues, independent streams may wait for each other, and work
/// on one would delay a measurement on another.
fn give_streams_queues_of_their_own() {
    const QUEUES: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
    if std::env::var_os(QUEUES).is_none() {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var(QUEUES, "32") };
    }
}

fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Role, String> {
    let mut wanted = Wanted {
        json: None,
        only: None,
        limit: Duration::from_secs(450),
    };
    while let Some(word) = words.next() {
        let mut value = || {
            let value = words.next().and_then(|value| value.into_string().ok());
            value.ok_or_else(|| format!("`{}` needs a value", word.display()))
        };
        match word.to_str() {
            Some("--help" | "-h") => return Ok(Role::Help),
            Some("--list") => return Ok(Role::List),
            Some("--table") => return Ok(Role::Table(value()?.into())),
            Some("--child") => return Ok(Role::Child(value()?)),
            Some("--only") => wanted.only = Some(value()?),
            Some("--limit") => {
                let seconds = value()?;
                let number = seconds
                    .parse()
                    .map_err(|_| format!("`{seconds}` is no number"))?;
                wanted.limit = Duration::from_secs(number);
            }
            Some(option) if option.starts_with('-') => {
                return Err(format!("`{option}` is not understood"));
            }
            _ if wanted.json.is_none() => wanted.json = Some(word.into()),
            _ => return Err("one path for the JSON is enough".to_owned()),
        }
    }
    Ok(Role::Suite(wanted))
}

/// Returns a variable that is set but must not be.
fn disturbing() -> Option<String> {
    let mut names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    names.find(|name| child::is_disturbing(name))
}

fn print_tables(path: &Path) -> ExitCode {
    match table::markdown(path) {
        Ok(tables) => print!("{tables}"),
        Err(trouble) => {
            eprintln!("{}: {trouble}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn list() {
    for theme in checks::THEMES {
        for check in theme.checks {
            println!("{}: {}\n    {}", theme.name, check.name, check.bound);
        }
    }
}
