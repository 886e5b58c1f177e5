//! The commands, one file each: its arguments, and `run`.

mod completions;
mod convert;
mod destination;
mod html;
mod man;
mod merge;
mod report;
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
    #[cfg(feature = "top")]
    Top(top::Top),
    Html(html::Html),
    Convert(convert::Convert),
    Validate(validate::Validate),
    Merge(merge::Merge),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        match self {
            Self::Report(command) => command.run(),
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
