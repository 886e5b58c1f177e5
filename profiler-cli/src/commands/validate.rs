//! `profiler validate`: do the tools read the file as it was meant?

use std::path::{Path, PathBuf};

use clap::Args;
use profiler_trace_validator::{Severity, ValidateError, ValidateOptions, validate_with};

use super::folder::{self, Wanted};
use super::unreadable;
use crate::error::Error;
use crate::exit::Exit;
use crate::input::{Beginning, Input, InputError, Limits};
use crate::output::{self, Stdout};

/// Checks that Perfetto, TensorBoard and HTA read a trace as it was meant, and that a summary is whole.
///
/// Prints each violation with its remedy, one on a line: first the errors, which a tool misreads, then remarks, which all of
/// them survive. The exit status is 1 if there are errors, and 2 if a file cannot be read, or is neither a trace nor a summary.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Traces (`.json`, `.json.gz`) and summaries (`.json`), and folders of them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Remarks are errors too.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    limits: Limits,
}

impl Validate {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        let mut output = Stdout::new();
        let mut exit = Exit::Done;
        for path in &folder::all(&self.files, Wanted::Any, None)? {
            // The other files are checked too.
            match self.check(path) {
                Ok(violations) => {
                    for (severity, violation) in violations {
                        if severity == Severity::Error {
                            exit = exit.max(Exit::Found);
                        }
                        output.line(format_args!("{}: {severity}: {violation}", path.display()))?;
                    }
                }
                Err(error) => {
                    exit = Exit::Unclear;
                    output::complain(&unreadable(path, error));
                }
            }
        }
        output.finish()?;
        Ok(exit)
    }

    fn check(&self, path: &Path) -> Result<Vec<(Severity, String)>, InputError> {
        match Beginning::of(path, self.limits.max_bytes)? {
            Beginning::Summary => {
                let violations = check_summary(path, self.limits)?.into_iter();
                return Ok(violations.map(|what| (Severity::Error, what)).collect());
            }
            Beginning::Trace => {}
            // A file that is none of these is not a damaged one.
            Beginning::Other => {
                if let Err(
                    other @ (InputError::Empty | InputError::Unknown | InputError::Converted(_)),
                ) = Input::read(path, self.limits)
                {
                    return Err(other);
                }
            }
        }
        let options = ValidateOptions::default()
            .max_bytes(self.limits.max_bytes)
            .max_events(self.limits.max_events);
        let violations = validate_with(path, &options).map_err(|error| match error {
            ValidateError::Io { source, .. } => InputError::of_io(source),
            ValidateError::TooLarge { max_bytes, .. } => InputError::TooLarge { max_bytes },
            ValidateError::TooManyEvents { max_events, .. } => {
                InputError::TooManyEvents { max_events }
            }
            ValidateError::EventTooLarge { max_bytes, .. } => {
                InputError::EventTooLarge { max_bytes }
            }
            error => InputError::Io(std::io::Error::other(error.to_string())),
        })?;
        let violations = violations.iter();
        let violations = violations.map(|found| (found.severity(self.strict), found.to_string()));
        Ok(violations.collect())
    }
}

/// Returns what is wrong with a summary.
fn check_summary(path: &Path, limits: Limits) -> Result<Vec<String>, InputError> {
    let summary = match Input::read(path, limits) {
        Ok(Input::Summary(summary)) => summary,
        // It was replaced meanwhile.
        Ok(Input::Timeline(_)) => return Err(InputError::Unknown),
        Err(error @ InputError::Json { .. }) => return Ok(vec![error.to_string()]),
        Err(error) => return Err(error),
    };
    let mut violations = Vec::new();
    let mut names = std::collections::HashSet::new();
    for row in &summary.rows {
        let mut violation = |what: &str| violations.push(format!("row `{}`: {what}", row.name));
        if !names.insert(&row.name) {
            violation("another row has its name: a summary has one row for each name");
        }
        if row.primitive_calls > row.calls {
            violation("it has more primitive calls than calls: write the summary again");
        }
        let times = [("CPU", row.cpu.as_ref()), ("CUDA", row.cuda.as_ref())];
        for (device, times) in times
            .into_iter()
            .filter_map(|(device, times)| Some((device, times?)))
        {
            // Totals of a running program are read shortly before self times.
            if times.self_ns > times.total_ns * 1.01 + 1000.0 && row.futures == 0 && row.open == 0 {
                violation(&format!(
                    "its {device} self time is longer than its total: write the summary again"
                ));
            }
            if [times.total_ns, times.self_ns]
                .iter()
                .any(|time| !time.is_finite())
            {
                violation(&format!(
                    "its {device} time is no number: write the summary again"
                ));
            }
        }
    }
    Ok(violations)
}
