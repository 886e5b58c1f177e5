//! The arguments that all commands share.

use clap::Parser;

use crate::commands::Command;

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
