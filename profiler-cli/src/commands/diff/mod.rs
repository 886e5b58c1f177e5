//! `profiler diff`: did a function get slower?

mod json;
mod markdown;
mod text;

use std::path::{Path, PathBuf};
use std::slice;

use clap::{Args, ValueEnum};

use super::folder::{self, Wanted};
use super::{read, say_what_is_missing};
use crate::budget::Budget;
use crate::compare::{Comparison, Options, Run, Verdict};
use crate::error::Error;
use crate::exit::Exit;
use crate::input::{Input, Limits};
use crate::output::Stdout;
use crate::run_of;
use crate::staging::same_file;

/// Compares runs of two versions of a program, function by function.
///
/// OLD and NEW are files, or folders with a file for each run: summaries (`.json`) or traces. With five or more runs on each
/// side, each figure has a verdict: slower, faster, same, unclear or not comparable. `profiler run --vs` makes the files.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if nothing is slower, 1 if a function is slower or over its budget, 2 with --strict if a \
                  figure is unclear or not comparable or a file cannot be read, 3 if the command line or the budget is not \
                  valid."
)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub(crate) struct Diff {
    /// File or folder of the base, and that of the new version.
    #[arg(num_args = 2, value_names = ["OLD", "NEW"], required_unless_present_all = ["base", "new"])]
    sides: Vec<PathBuf>,
    /// Files and folders of the base, if they are several.
    #[arg(long, requires = "new", conflicts_with = "sides", num_args = 1.., value_name = "FILE")]
    base: Vec<PathBuf>,
    /// Files and folders of the new version.
    #[arg(long, requires = "base", conflicts_with = "sides", num_args = 1.., value_name = "FILE")]
    new: Vec<PathBuf>,
    /// Format of the output.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Absolute limits of the new version: a TOML file such as `"app::forward" = { cuda_p95 = "2 ms" }`.
    #[arg(long, value_name = "FILE")]
    budget: Option<PathBuf>,
    /// Exit with 2 if a figure is unclear or not comparable.
    #[arg(long)]
    strict: bool,
    /// Lists the figures that are the same too.
    #[arg(long)]
    all: bool,
    /// Compares elapsed times, with waits and preemption, also if the files have thread times.
    #[arg(long)]
    elapsed: bool,
    /// Compares the 95th percentiles too, of functions without measured children.
    #[arg(long)]
    p95: bool,
    /// Functions with a smaller share of the time are not judged, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0 * Options::DEFAULT.min_share, value_parser = percent)]
    min_share: f64,
    /// Takes what can be read of traces that are cut off or damaged.
    #[arg(long)]
    partial: bool,
    #[command(flatten)]
    limits: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Markdown,
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=100.0).contains(&percent) {
        Ok(percent)
    } else {
        Err("not between 0 and 100".to_owned())
    }
}

impl Diff {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        let budget = self.budget.as_deref().map(Budget::read).transpose()?;
        let (base, new) = match self.sides.split_first() {
            Some((base, new)) => (slice::from_ref(base), new),
            None => (&self.base[..], &self.new[..]),
        };
        let base_files = folder::all(base, Wanted::Any, None)?;
        let new_files = folder::all(new, Wanted::Any, None)?;
        let limits = Limits {
            is_whole: !self.partial,
            ..self.limits
        };
        let base = read_all(&base_files, limits)?;
        let new = read_all(&new_files, limits)?;
        refuse_one_run_twice([(&base_files, &base), (&new_files, &new)])?;
        let options = Options {
            elapsed: self.elapsed,
            p95: self.p95,
            min_share: self.min_share / 100.0,
        };
        let comparison = compare(&base, &new, options);
        let excess = budget.map(|budget| budget.check(&new)).unwrap_or_default();
        let lines = match self.format {
            Format::Text => {
                let mut lines = text::render(&comparison, self.all);
                lines.extend(excess.over.iter().chain(&excess.missing).cloned());
                lines
            }
            Format::Json => vec![json::render(&comparison, &excess)],
            Format::Markdown => markdown::render(&comparison, self.all, &excess),
        };
        let mut output = Stdout::new();
        for line in lines {
            if self.format == Format::Json {
                output.text(&line)?;
                output.text("\n")?;
            } else {
                output.line(format_args!("{line}"))?;
            }
        }
        output.finish()?;
        let has = |verdict| comparison.has(verdict);
        let is_unclear = [Verdict::Unclear, Verdict::NotComparable, Verdict::None]
            .into_iter()
            .any(has)
            || comparison.rows.is_empty()
            || !comparison.has_verdicts();
        Ok(if has(Verdict::Slower) || !excess.over.is_empty() {
            Exit::Found
        } else if self.strict && (is_unclear || !excess.missing.is_empty()) {
            Exit::Unclear
        } else {
            Exit::Done
        })
    }
}

/// Refuses a run that stands on both sides, or twice on one: as a summary and as a trace, for instance.
fn refuse_one_run_twice(sides: [(&[PathBuf], &[Input]); 2]) -> Result<(), Error> {
    let sides = [(1, sides[0]), (2, sides[1])];
    let files = sides.iter().flat_map(|(side, (files, inputs))| {
        let files = files.iter().zip(*inputs);
        files.map(|(file, input)| (*side, file, input))
    });
    let files: Vec<(i32, &PathBuf, &Input)> = files.collect();
    let pairs = || (1..files.len()).flat_map(|at| files[..at].iter().map(move |one| (one, at)));
    let twice = pairs().find(|(one, at)| same_file(one.1, files[*at].1));
    let twice = twice.map(|(one, at)| (one, files[at], "is given twice".to_owned()));
    let same = || {
        let (one, at) = pairs().find(|(one, at)| run_of::is_same(one.2, files[*at].2))?;
        Some((
            one,
            files[at],
            format!("is of the same run as {}", one.1.display()),
        ))
    };
    let Some((one, other, what)) = twice.or_else(same) else {
        return Ok(());
    };
    let why = if one.0 == other.0 {
        "and would count as two runs: give one file of each run"
    } else {
        "on the other side: a comparison needs runs of two versions"
    };
    Err(Error::Usage(format!(
        "{}: {what}, {why}",
        other.1.display()
    )))
}

/// Compares the runs in two folders as the command does without options, and returns the lines to print.
pub(super) fn of_folders(base: &Path, new: &Path) -> Result<Vec<String>, Error> {
    let read = |folder: &Path| read_all(&folder::quietly(folder, Wanted::Any)?, Limits::DEFAULT);
    let comparison = compare(&read(base)?, &read(new)?, Options::DEFAULT);
    Ok(text::render(&comparison, false))
}

fn compare(base: &[Input], new: &[Input], options: Options) -> Comparison {
    let runs = |side: &[Input]| -> Vec<Run> { side.iter().map(run_of).collect() };
    Comparison::of(&runs(base), &runs(new), options)
}

fn run_of(input: &Input) -> Run {
    match input {
        Input::Summary(summary) => Run::of_summary(summary),
        Input::Timeline(timeline) => Run::of_timeline(timeline),
    }
}

fn read_all(files: &[PathBuf], limits: Limits) -> Result<Vec<Input>, Error> {
    let read = |file: &PathBuf| {
        let input = read(file, limits)?;
        say_what_is_missing(file, &input);
        Ok(input)
    };
    files.iter().map(read).collect()
}
