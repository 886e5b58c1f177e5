//! `profiler top`: a running program, as it changes.

mod feed;
mod file;
mod keys;
mod line;
mod screen;
mod terminal;
mod text;

use std::path::PathBuf;

use clap::Args;

use self::feed::Feed;
use self::file::File;
use self::keys::View;
use self::line::Order;
use super::folder::{self, Wanted};
use crate::error::Error;
use crate::exit::Exit;
use crate::input::Limits;

/// Shows the summary of a running program as it changes.
///
/// Start the program with `PROFILER_SUMMARY=FILE PROFILER_SUMMARY_INTERVAL=1s`. The rates are those between the last two
/// times that the file was written. Keys: `?` shows them, `q` quits.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// The summary (`.json`), which need not exist yet; of a folder, the newest.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The value that the rows are sorted by.
    #[arg(long, value_enum, default_value_t = Order::Cpu)]
    sort: Order,
    /// Shows only names that contain this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    #[command(flatten)]
    limits: Limits,
}

impl Top {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        let view = View::new(self.sort, self.filter);
        let file = folder::newest(&self.file, Wanted::Summaries)?;
        let file = File::new(file, self.limits);
        terminal::run(file, Feed::default(), view)?;
        Ok(Exit::Done)
    }
}
