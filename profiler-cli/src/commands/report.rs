//! `profiler report`: the table of a summary or a trace.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use profiler_report::{CallEdges, Color, KeyAverages, Restriction, SortKey, Summary, TableOptions};

use super::folder::{self, Wanted};
use super::read;
use crate::error::Error;
use crate::exit::Exit;
use crate::input::{Input, Limits};
use crate::output::{Stdout, complain};

/// Prints the table of a summary, or the key averages of a trace.
///
/// The table of a summary is the one that the program printed. A trace has a row for each function, and for each kernel
/// and copy; the functions around a launch have the time of the kernel in their CUDA total.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Summary (`.json`) or trace (`.json`, `.json.gz`, PyTorch's `.pt.trace.json`); of a folder, the newest.
    file: PathBuf,
    /// Value that rows are sorted by, such as `self_cuda_time_total`.
    #[arg(long, value_name = "KEY", value_parser = sort_key)]
    sort: Option<SortKey>,
    /// Most rows of a table; -1 for all.
    #[arg(
        long,
        value_name = "ROWS",
        default_value_t = 100,
        allow_negative_numbers = true
    )]
    row_limit: i64,
    /// Most notes below a table; -1 for all.
    #[arg(
        long,
        value_name = "NOTES",
        default_value_t = 3,
        allow_negative_numbers = true
    )]
    note_limit: i64,
    /// Keep these rows: a number of rows, a fraction, or a regular expression for names. Applied in order.
    #[arg(long, value_name = "ROWS|FRACTION|PATTERN")]
    restrict: Vec<String>,
    /// Adds percentiles, deviation and extremes.
    #[arg(long)]
    statistics: bool,
    /// Prints the callers of the rows instead.
    #[arg(long, conflicts_with = "callees")]
    callers: bool,
    /// Prints the functions that the rows called instead.
    #[arg(long)]
    callees: bool,
    /// Prints the kernels and copies that the rows launched instead, and what limits each function.
    #[arg(long, conflicts_with_all = ["callers", "callees"])]
    kernels: bool,
    /// Format of the output.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Width of the table in columns [default: COLUMNS, or the width of the terminal].
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
    /// When the table has colours.
    #[arg(long, value_enum, default_value_t = When::Auto)]
    color: When,
    #[command(flatten)]
    limits: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum When {
    /// If standard output is a terminal.
    Auto,
    Always,
    Never,
}

impl When {
    pub(super) fn color(self) -> Color {
        match self {
            Self::Auto => Color::Auto,
            Self::Always => Color::Always,
            Self::Never => Color::Never,
        }
    }
}

fn sort_key(name: &str) -> Result<SortKey, String> {
    name.parse()
        .map_err(|error: profiler_report::SortKeyError| error.to_string())
}

/// Interprets a restriction as `pstats` does: by its type.
fn restriction(text: &str) -> Restriction {
    if let Ok(rows) = text.parse::<usize>() {
        return Restriction::First(rows);
    }
    match text.parse::<f64>() {
        Ok(part) => Restriction::Part(part),
        Err(_) => Restriction::Name(text.to_owned()),
    }
}

/// The two kinds of tables.
enum Rows {
    Summary(Box<Summary>),
    Averages(Box<KeyAverages>),
}

/// Calls a method that both kinds have.
macro_rules! each {
    ($rows:expr, $table:ident => $call:expr) => {
        match $rows {
            Rows::Summary($table) => $call,
            Rows::Averages($table) => $call,
        }
    };
}

impl Report {
    pub(crate) fn run(mut self) -> Result<Exit, Error> {
        self.file = folder::newest(&self.file, Wanted::Any)?;
        let mut rows = match read(&self.file, self.limits)? {
            Input::Summary(summary) => Rows::Summary(summary),
            Input::Timeline(timeline) => Rows::Averages(Box::new(timeline.key_averages())),
        };
        if let Some(key) = self.sort {
            rows = match rows {
                Rows::Summary(summary) => Rows::Summary(Box::new(summary.sort_by(key))),
                Rows::Averages(averages) => Rows::Averages(Box::new(averages.sort_by(key))),
            };
        }
        for text in &self.restrict {
            let to = restriction(text);
            let refused = |error: profiler_report::RestrictionError| {
                Error::Usage(format!("--restrict {text}: {error}"))
            };
            rows = match rows {
                Rows::Summary(table) => {
                    Rows::Summary(Box::new(table.restrict(to).map_err(refused)?))
                }
                Rows::Averages(table) => {
                    Rows::Averages(Box::new(table.restrict(to).map_err(refused)?))
                }
            };
        }
        let text = if self.kernels {
            self.kernels(&rows)?
        } else if self.callers || self.callees {
            self.check_callers(&rows)?;
            self.edges(&each!(&rows, table => if self.callers {
                table.callers()
            } else {
                table.callees()
            }))
        } else {
            self.table(&rows)
        };
        let mut output = Stdout::new();
        match self.format {
            Format::Text => output.table(&text)?,
            Format::Json | Format::Csv => output.text(&text)?,
        }
        if !text.ends_with('\n') {
            output.text("\n")?;
        }
        output.finish()?;
        Ok(Exit::Done)
    }

    fn table(&self, rows: &Rows) -> String {
        match self.format {
            Format::Text => {
                let options = self.options();
                each!(rows, table => table.table(&options))
            }
            Format::Json => each!(rows, table => table.to_json()),
            // A reader of CSV has no place for notes.
            Format::Csv => each!(rows, table => {
                for note in &table.notes {
                    complain(note);
                }
                table.to_csv()
            }),
        }
    }

    fn kernels(&self, rows: &Rows) -> Result<String, Error> {
        let Rows::Averages(averages) = rows else {
            return Err(Error::Usage(format!(
                "--kernels: {} is a summary, and kernels are in traces",
                self.file.display()
            )));
        };
        let kernels = averages.kernels();
        Ok(match self.format {
            Format::Text => {
                let options = self.options();
                kernels.table(
                    self.sort
                        .map_or_else(|| options.clone(), |key| options.clone().sort_by(key)),
                )
            }
            Format::Json => kernels.to_json(),
            Format::Csv => kernels.to_csv(),
        })
    }

    /// Refuses a summary of a program that did not count callers.
    fn check_callers(&self, rows: &Rows) -> Result<(), Error> {
        match rows {
            Rows::Summary(summary) if summary.call_tree.is_none() => Err(Error::Refused {
                path: self.file.clone(),
                reason: "has no callers: run the program with PROFILER_CALLERS=1, or give a trace"
                    .to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn edges(&self, edges: &CallEdges) -> String {
        match self.format {
            Format::Text => edges.table(self.options()),
            Format::Json => edges.to_json(),
            Format::Csv => edges.to_csv(),
        }
    }

    fn options(&self) -> TableOptions {
        let options = TableOptions::new()
            .row_limit(self.row_limit)
            .note_limit(self.note_limit)
            .all_notes_with("`--note-limit -1` shows them")
            .statistics(self.statistics)
            .color(self.color.color());
        match self.width {
            Some(width) => options.width(width),
            None => options,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restrictions_are_told_apart_as_in_pstats() {
        for (text, to) in [
            ("10", Restriction::First(10)),
            ("0.5", Restriction::Part(0.5)),
            ("1.0", Restriction::Part(1.0)),
            ("^model::", Restriction::Name("^model::".to_owned())),
        ] {
            assert_eq!(restriction(text), to);
        }
    }
}
