//! The commands, one file each: its arguments, and `run`.

mod completions;
mod convert;
mod destination;
mod diff;
mod html;
mod man;
mod merge;
mod report;
mod run;
#[cfg(feature = "top")]
mod top;
mod validate;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;

/// One command of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Report(report::Report),
    Html(html::Html),
    Convert(convert::Convert),
    Validate(validate::Validate),
    Run(run::Run),
    Diff(diff::Diff),
    Merge(merge::Merge),
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
            Self::Run(command) => command.run(),
            #[cfg(feature = "top")]
            Self::Top(command) => command.run(),
            Self::Html(command) => command.run(),
            Self::Convert(command) => command.run(),
            Self::Validate(command) => command.run(),
            Self::Merge(command) => command.run(),
            Self::Completions(command) => command.run(),
            Self::Man(command) => command.run(),
        }
    }
}
