//! The commands, one file each: its arguments, and `run`.

mod merge;
mod report;
#[cfg(feature = "top")]
mod top;
mod validate;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;

/// What the program is asked to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Merge(merge::Merge),
    Report(report::Report),
    #[cfg(feature = "top")]
    Top(top::Top),
    Validate(validate::Validate),
}

impl Command {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        match self {
            Self::Merge(command) => command.run(),
            Self::Report(command) => command.run(),
            #[cfg(feature = "top")]
            Self::Top(command) => command.run(),
            Self::Validate(command) => command.run(),
        }
    }
}
