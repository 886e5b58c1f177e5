//! `profiler man`: the manual page.

use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, roman};

use super::Arguments;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Stdout;

/// Prints the manual page.
///
/// To read it: `profiler man | man -l -`. To install it: `profiler man > ~/.local/share/man/man1/profiler.1`.
#[derive(Debug, Args)]
pub(crate) struct Man {}

impl Man {
    #[allow(clippy::unused_self, reason = "each command runs with its arguments")]
    pub(crate) fn run(self) -> Result<Exit, Error> {
        let mut output = Stdout::new();
        output.text(&String::from_utf8_lossy(&render().map_err(Error::Stdout)?))?;
        output.finish()?;
        Ok(Exit::Done)
    }
}

/// Renders one page: the program's own, and a section for each command, so that there is one file to install.
fn render() -> std::io::Result<Vec<u8>> {
    let mut command = Arguments::command();
    command.build();
    let mut text = Vec::new();
    let page = Page::new(command.clone());
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    for subcommand in command.get_subcommands() {
        let name = subcommand.get_name();
        if name == "help" {
            continue;
        }
        let mut roff = Roff::new();
        roff.control("SH", [format!("profiler {name}").as_str()]);
        let about = subcommand.get_long_about().or(subcommand.get_about());
        roff.text([roman(about.map(ToString::to_string).unwrap_or_default())]);
        roff.to_writer(&mut text)?;
        Page::new(subcommand.clone()).render_options_section(&mut text)?;
    }
    page.render_extra_section(&mut text)?;
    Ok(text)
}
