//! The commands, one file each: its arguments, and `run`.

mod report;
mod validate;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;

/// What the program is asked to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Report(report::Report),
    Validate(validate::Validate),
}

impl Command {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        match self {
            Self::Report(command) => command.run(),
            Self::Validate(command) => command.run(),
        }
    }
}
