//! `profiler completions`: completions for shells.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::generate;
use clap_complete::shells::{Bash, Fish, Zsh};

use super::Arguments;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Stdout;

/// Prints completions for a shell.
///
/// For bash: `profiler completions bash > ~/.local/share/bash-completion/completions/profiler`. For zsh: write them to a
/// file `_profiler` in a folder of `$fpath`. For fish: `profiler completions fish > ~/.config/fish/completions/profiler.fish`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell that completes the command line.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        let mut command = Arguments::command();
        let mut text = Vec::new();
        match self.shell {
            Shell::Bash => generate(Bash, &mut command, "profiler", &mut text),
            Shell::Zsh => generate(Zsh, &mut command, "profiler", &mut text),
            Shell::Fish => generate(Fish, &mut command, "profiler", &mut text),
        }
        let mut output = Stdout::new();
        output.text(&String::from_utf8_lossy(&text))?;
        output.finish()?;
        Ok(Exit::Done)
    }
}
