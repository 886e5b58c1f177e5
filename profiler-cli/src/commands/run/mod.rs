//! `profiler run`: runs a program several times and keeps a summary of each run.

mod command_line;
mod signals;
mod summaries;

use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use clap::Args;
use profiler_host::diagnostics::printable;
use profiler_report::internal::format_time;

use self::command_line::split;
use self::signals::Signals;
use self::summaries::OTHERS;
use super::diff;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Stdout;

/// Runs a program several times, and keeps the summary of each run for `profiler diff`.
///
/// Each run gets `PROFILER_SUMMARY`, and `PROFILER_THREAD_TIME=1` unless it is set: on a shared machine, elapsed times
/// include those in which other programs ran.
///
/// With --vs, a second program takes turns with the first, so that a change of the machine affects both alike. Its
/// summaries are in DIR/base, and those of COMMAND in DIR/new. The comparison is printed, as `profiler diff DIR/base DIR/new`
/// prints it. It has no part in the exit status: that of `diff` says whether a function is slower.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if all runs succeeded; that of the program if a run failed, or 128 and the number of the \
                  signal that ended it; 2 if a run wrote no summary; 3 if the command line is not valid; 130 after Ctrl-C; \
                  143 after SIGTERM."
)]
pub(crate) struct Run {
    /// Number of runs of each program.
    #[arg(short = 'n', long, value_name = "RUNS", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Folder for the summaries (`1.json`, `2.json` …) and the output of the program (`1.stdout`, `1.stderr` …).
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Command line of the base, in one argument: words are separated by spaces, and quotes keep a word together.
    #[arg(long, value_name = "OTHER")]
    vs: Option<String>,
    /// Run each program once before, without a summary.
    #[arg(long)]
    warmup: bool,
    /// Measure elapsed times only: for programs whose functions wait, or with many calls shorter than a microsecond.
    #[arg(long)]
    no_thread_time: bool,
    /// Add runs to those that are in the folder: they are compared together, so the programs must be the same.
    #[arg(long)]
    append: bool,
    /// Program to run, with its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A program and the folder for its files.
struct Side {
    name: &'static str,
    command: Vec<String>,
    folder: PathBuf,
}

impl Run {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        let sides = self.sides()?;
        let mut before = 0;
        for side in &sides {
            before = before.max(prepare(&side.folder, self.vs.is_some(), self.append)?);
        }
        let signals = Signals::watch();
        let mut progress = Progress::new(usize::from(self.runs) * sides.len());
        if self.warmup {
            for side in &sides {
                progress.say(&format!("warm-up{}", side.name));
                self.one(side, None, &signals, &progress)?;
            }
        }
        for number in (before + 1..).take(usize::from(self.runs)) {
            // Each pair begins with the other program than the pair before, so that neither always runs second, and a
            // machine that slows down steadily affects both alike.
            let mut pair: Vec<&Side> = sides.iter().collect();
            if number % 2 == 0 {
                pair.reverse();
            }
            for side in pair {
                progress.next(side, number);
                self.one(side, Some(number), &signals, &progress)?;
            }
        }
        drop(progress);
        let mut output = Stdout::new();
        let noun = if self.runs == 1 {
            "summary"
        } else {
            "summaries"
        };
        match &sides[..] {
            [base, new] => {
                for line in diff::of_folders(&base.folder, &new.folder)? {
                    output.line(format_args!("{line}"))?;
                }
                output.line(format_args!(""))?;
                output.line(format_args!(
                    "the same again: profiler diff {} {}",
                    base.folder.display(),
                    new.folder.display()
                ))?;
            }
            _ if before > 0 => output.line(format_args!(
                "{} more {noun} in {}, from {}.json on",
                self.runs,
                self.output.display(),
                before + 1
            ))?,
            _ => output.line(format_args!(
                "{} {noun} in {}",
                self.runs,
                self.output.display()
            ))?,
        }
        output.finish()?;
        // Nothing has looked since the last run ended, and the output may have been waited for.
        match (signals.exit_code(), sides.last()) {
            (Some(code), Some(side)) => Err(stopped(side, code)),
            _ => Ok(Exit::Done),
        }
    }

    fn sides(&self) -> Result<Vec<Side>, Error> {
        // The program may change its folder.
        let folder = std::path::absolute(&self.output).map_err(|source| Error::Write {
            path: self.output.clone(),
            source,
        })?;
        let Some(other) = &self.vs else {
            return Ok(vec![Side {
                name: "",
                command: self.command.clone(),
                folder,
            }]);
        };
        let other = split(other).map_err(|error| Error::Usage(format!("--vs: {error}")))?;
        Ok(vec![
            Side {
                name: " of the base",
                command: other,
                folder: folder.join("base"),
            },
            Side {
                name: " of the new version",
                command: self.command.clone(),
                folder: folder.join("new"),
            },
        ])
    }

    /// Runs a program to its end. Without a number, it writes no summary.
    fn one(
        &self,
        side: &Side,
        number: Option<u32>,
        signals: &Signals,
        progress: &Progress,
    ) -> Result<(), Error> {
        let Some((program, arguments)) = side.command.split_first() else {
            return Err(Error::Usage("there is no program to run".to_owned()));
        };
        let name = number.map_or_else(|| "warm-up".to_owned(), |number| number.to_string());
        let file = |ending: &str| side.folder.join(format!("{name}.{ending}"));
        let summary = file("json");
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(create(&file("stdout"))?)
            .stderr(create(&file("stderr"))?);
        match number {
            Some(_) => command.env("PROFILER_SUMMARY", &summary),
            None => command.env("PROFILER_SUMMARY", "off"),
        };
        if self.no_thread_time {
            command.env_remove("PROFILER_THREAD_TIME");
        } else if std::env::var_os("PROFILER_THREAD_TIME").is_none() {
            command.env("PROFILER_THREAD_TIME", "1");
        }
        if let Some(code) = signals.exit_code() {
            return Err(stopped(side, code));
        }
        let (process, status) = signals
            .run(&mut command)
            .map_err(|error| error.of(program))?;
        if !status.success() {
            // It is no whole run, and `diff` would take it for one.
            summaries::remove(&side.folder, &name);
        }
        if let Some(code) = signals.exit_code() {
            return Err(stopped(side, code));
        }
        if !status.success() {
            return Err(Error::Program {
                code: code(status),
                message: format!(
                    "run {name}{} ended with {status}: see {}",
                    side.name,
                    file("stderr").display()
                ),
            });
        }
        let kept = summaries::keep_one(&side.folder, &name, process);
        let kept = kept.map_err(|source| Error::Write {
            path: side.folder.clone(),
            source,
        })?;
        if let Some(remark) = kept {
            progress.remark(&format!("run {name}{}: {remark}", side.name));
        }
        if number.is_some() && !summary.is_file() {
            return Err(Error::Program {
                code: Exit::Unclear.code(),
                message: format!(
                    "run {name}{} wrote no summary: the program must use profiler-runtime, measure something, and end by \
                     itself; see {}",
                    side.name,
                    file("stderr").display()
                ),
            });
        }
        Ok(())
    }
}

/// Why there is no exit status of a program.
enum RunError {
    Start(io::Error),
    Wait(io::Error),
}

impl RunError {
    fn of(self, program: &str) -> Error {
        let message = match self {
            Self::Start(error) => format!("{program} cannot be started: {error}"),
            Self::Wait(error) => {
                format!("{program} was started, but cannot be waited for: {error}")
            }
        };
        Error::Program {
            code: Exit::Unclear.code(),
            message,
        }
    }
}

fn stopped(side: &Side, code: u8) -> Error {
    Error::Program {
        code,
        message: format!(
            "stopped; the summaries of finished runs are in {}",
            side.folder.display()
        ),
    }
}

/// Creates the folder, and returns the number of its last run. It must not have summaries of earlier runs unless this
/// experiment continues them: they would be compared too. `is_inside` says that the user named the folder around it.
fn prepare(folder: &Path, is_inside: bool, append: bool) -> Result<u32, Error> {
    let failed = |source| Error::Write {
        path: folder.to_owned(),
        source,
    };
    if folder.is_file() {
        return Err(Error::Usage(format!(
            "{}: is a file: the summaries of all runs go to a folder, give its name",
            folder.display()
        )));
    }
    fs::create_dir_all(folder).map_err(failed)?;
    // `base`, `new` and `others` are folders of this program, inside of one that the user named.
    for inside in [is_inside.then_some(folder), Some(&folder.join(OTHERS))]
        .into_iter()
        .flatten()
    {
        if inside.is_symlink() {
            return Err(Error::Refused {
                path: inside.to_owned(),
                reason: "is a link, and files of the runs would go to where it leads: remove it, or give another folder"
                    .to_owned(),
            });
        }
    }
    let mut last = 0;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        if !append {
            return Err(Error::Usage(format!(
                "{} has summaries of other runs ({}): add to them with --append, or give a new folder",
                folder.display(),
                path.file_name().unwrap_or_default().display()
            )));
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        last = last.max(stem.parse().unwrap_or(0));
    }
    Ok(last)
}

/// Creates a file. What has the name is removed, and not written to: it may be a link to another file.
fn create(path: &Path) -> Result<File, Error> {
    let removed = match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    let created = removed.and_then(|()| File::create_new(path));
    created.map_err(|source| Error::write(path, source))
}

/// Returns the exit status as shells report it.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or(signal).unwrap_or(1);
    // Windows has larger ones, and zero would be a success.
    u8::try_from(code)
        .ok()
        .filter(|code| *code != 0)
        .unwrap_or(1)
}

/// A line on standard error that says which run is in progress, if that is a terminal.
struct Progress {
    started: Instant,
    runs: usize,
    done: usize,
    is_shown: bool,
}

impl Progress {
    fn new(runs: usize) -> Self {
        Self {
            started: Instant::now(),
            runs,
            done: 0,
            is_shown: io::stderr().is_terminal(),
        }
    }

    fn next(&mut self, side: &Side, number: u32) {
        self.done += 1;
        let elapsed = format_time(self.started.elapsed().as_secs_f64() * 1e9);
        self.say(&format!(
            "run {} of {}: {number}{} ({elapsed})",
            self.done, self.runs, side.name
        ));
    }

    /// Says something that stays.
    fn remark(&self, text: &str) {
        self.say("");
        let _ = writeln!(io::stderr(), "{}", printable(text));
    }

    fn say(&self, text: &str) {
        if self.is_shown {
            // If standard error is closed, the work continues.
            let _ = write!(io::stderr(), "\r{}\x1b[K", printable(text));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.say("");
    }
}
