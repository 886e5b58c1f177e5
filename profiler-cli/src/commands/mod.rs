//! The command line: the commands, one file each with its arguments and `run`.

mod completions;
mod convert;
mod destination;
mod diff;
mod explain;
mod folder;
mod html;
mod man;
mod merge;
mod report;
mod run;
mod smi;
#[cfg(feature = "top")]
mod top;
mod validate;

pub use self::destination::Format as ConvertFormat;

use std::io;
use std::path::Path;

use clap::{Parser, Subcommand};
use profiler_report::internal::missing_of_timeline;

use crate::error::Error;
use crate::exit::Exit;
use crate::input::{Input, InputError, Limits};
use crate::output::complain;

/// Shows where the time goes: reads the summaries and traces of profiler-runtime and of PyTorch's profiler.
#[derive(Debug, Parser)]
#[command(
    name = "profiler",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "Exit status: 0 if nothing was found, 1 if something was, 2 if there is no answer (a file cannot be read, \
                  a comparison is unclear), 3 if the command line is not valid."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One command of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Report(report::Report),
    Explain(explain::Explain),
    Html(html::Html),
    Convert(convert::Convert),
    Validate(validate::Validate),
    Run(run::Run),
    Diff(diff::Diff),
    Merge(merge::Merge),
    Smi(smi::Smi),
    #[cfg(feature = "top")]
    Top(top::Top),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        match self {
            Self::Diff(command) => command.run(),
            Self::Report(command) => command.run(),
            Self::Explain(command) => command.run(),
            Self::Run(command) => command.run(),
            #[cfg(feature = "top")]
            Self::Top(command) => command.run(),
            Self::Html(command) => command.run(),
            Self::Convert(command) => command.run(),
            Self::Validate(command) => command.run(),
            Self::Merge(command) => command.run(),
            Self::Smi(command) => command.run(),
            Self::Completions(command) => command.run(),
            Self::Man(command) => command.run(),
        }
    }
}

/// Reads a file that a command line names.
fn read(path: &Path, limits: Limits) -> Result<Input, Error> {
    Input::read(path, limits).map_err(|source| unreadable(path, source))
}

/// Says on standard error what a trace lacks, for commands whose output has no place for it.
fn say_what_is_missing(path: &Path, input: &Input) {
    if let Input::Timeline(timeline) = input {
        for line in missing_of_timeline(timeline) {
            complain(&format_args!("{}: {line}", path.display()));
        }
    }
}

/// Returns the error of a file that cannot be read; if it is not there, with what its name may stand for.
fn unreadable(path: &Path, source: InputError) -> Error {
    match source {
        InputError::Io(error) if error.kind() == io::ErrorKind::NotFound => Error::Refused {
            path: path.to_owned(),
            reason: format!("cannot be read: {error}{}", folder::instead_of(path)),
        },
        source => Error::input(path, source),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
