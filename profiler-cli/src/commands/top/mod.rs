//! `profiler top`: a running program, as it changes.

mod canvas;
mod cursor;
mod feed;
mod file;
mod keys;
mod line;
mod pace;
mod ranks;
mod screen;
mod snapshot;
mod strip;
mod styled;
mod terminal;
mod text;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;

use self::keys::View;
use self::line::Order;
use self::ranks::Job;
use crate::error::Error;
use crate::exit::Exit;
use crate::input::Limits;

/// Shows the summary of a running program as it changes, or those of all ranks of a job.
///
/// Start the program with `PROFILER_SUMMARY=FILE PROFILER_SUMMARY_INTERVAL=1s`. The rates are those between the last two
/// times that the file was written. Keys: `?` shows them, `q` quits. If standard output is no terminal, the screen is
/// printed once.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// The summary (`.json`), which need not exist yet, or a folder with the summaries of several ranks.
    #[arg(value_name = "FILE|DIR")]
    file: PathBuf,
    /// The value that the rows are sorted by.
    #[arg(long, value_enum, default_value_t = Order::Limit)]
    sort: Order,
    /// Shows only names that contain this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// The function whose calls are the steps [default: the longest one with the word `step` in its name].
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
    #[command(flatten)]
    limits: Limits,
}

impl Top {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        let view = View::new(self.sort, self.filter);
        let (job, view) = if self.file.is_dir() {
            let job = Job::of_folder(self.file, self.limits, self.step)?;
            let only = match &job.ranks[..] {
                [only] => Some(only.key()),
                _ => None,
            };
            (job, view.of_ranks(only))
        } else {
            (Job::of_file(self.file, self.limits, self.step), view)
        };
        if io::stdout().is_terminal() {
            terminal::run(job, view)?;
        } else {
            snapshot::print(job, view)?;
        }
        Ok(Exit::Done)
    }
}
