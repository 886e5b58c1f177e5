//! Checks that the tools will read a trace correctly.
//!
//! Perfetto, TensorBoard's trace plugin (torch-tb-profiler 0.4.3) and HTA (0.5) all open the traces that
//! PyTorch's profiler and `profiler-runtime` write. Each drops events, shows wrong numbers or crashes on some inputs, and
//! rarely says so. [`validate`] reports such inputs as violations of numbered [`Rule`]s, each with its remedy. Use it in
//! the tests of a program that writes traces:
//!
//! ```
//! use profiler_trace_validator::validate;
//!
//! # let path = std::env::temp_dir().join(format!("good-{}.json", std::process::id()));
//! # std::fs::write(&path, r#"{"traceEvents": [
//! #     {"ph": "X", "cat": "cpu_op", "name": "forward", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2, "args": {"External id": 1}}
//! # ]}"#)?;
//! let violations = validate(&path)?;
//! assert!(violations.is_empty(), "{violations:#?}");
//! # std::fs::remove_file(path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # On the command line
//!
//! `cargo install profiler-trace-validator` installs a program that prints the violations, one on each line:
//!
//! ```text
//! $ profiler-trace-validator trace.json.gz
//! trace.json.gz: error: rule 6 (Slice), event 0 `forward`: it needs `cat`, `ts`, and a `dur` that is not negative
//! ```
//!
//! What the tools survive is a remark, and comes after the errors. The exit status is 0 if there are no errors, 1 if there are
//! some, and 2 if a file cannot be read. `--strict` makes errors of remarks.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod arrows;
mod check;
mod correlations;
mod devices;
mod event;
mod nesting;
mod rank;
mod read;
mod rule;
mod source;
mod violations;

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::error::Category;

use self::check::Checker;
use self::source::{Over, ReadProgress};
pub use rule::{Rule, Severity, Violation};

/// The default size limit of a trace that [`validate`] reads, in bytes after decompression: 256 MiB.
pub const DEFAULT_MAX_TRACE_BYTES: u64 = 256 << 20;

/// The default limit on the events of a trace: ten million.
pub const DEFAULT_MAX_EVENTS: u64 = 10_000_000;

/// Options of [`validate_with`].
///
/// # Examples
///
/// ```
/// use profiler_trace_validator::ValidateOptions;
///
/// let options = ValidateOptions::default().max_bytes(4 << 30);
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "options do nothing until they are given to `validate_with`"]
pub struct ValidateOptions {
    max_bytes: u64,
    max_events: u64,
}

impl Default for ValidateOptions {
    fn default() -> Self {
        Self {
            max_bytes: DEFAULT_MAX_TRACE_BYTES,
            max_events: DEFAULT_MAX_EVENTS,
        }
    }
}

impl ValidateOptions {
    /// Sets the size limit in bytes after decompression; [`DEFAULT_MAX_TRACE_BYTES`] by default. A trace of nothing but
    /// small events needs up to four times as much memory.
    pub const fn max_bytes(self, bytes: u64) -> Self {
        Self {
            max_bytes: bytes,
            ..self
        }
    }

    /// Sets the limit on events; [`DEFAULT_MAX_EVENTS`] by default.
    pub const fn max_events(self, events: u64) -> Self {
        Self {
            max_events: events,
            ..self
        }
    }
}

/// Why a trace could not be read. `Debug` prints the message too.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ValidateError {
    /// The file could not be read or decompressed.
    #[error("cannot read the trace {}: {source}; check its name, and that it is whole", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The trace is larger than the options allow.
    #[error(
        "the trace {} has more than {max_bytes} bytes once it is decompressed: give `validate_with` a larger \
         `ValidateOptions::max_bytes` (on the command line: --max-bytes), or record a shorter window", path.display()
    )]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The limit in bytes.
        max_bytes: u64,
    },
    /// The trace has more events than the options allow.
    #[error(
        "the trace {} has more than {max_events} events: give `validate_with` a larger `ValidateOptions::max_events` (on the \
         command line: --max-events), or record a shorter window", path.display()
    )]
    TooManyEvents {
        /// The path of the file.
        path: PathBuf,
        /// The limit.
        max_events: u64,
    },
    /// One event, or one of the other values that are checked, is larger than 4 MiB, or a text that is not checked is larger
    /// than 64 MiB.
    #[error(
        "the trace {} has an event or a text of more than {max_bytes} bytes: no tool writes that; see that it is a trace",
        path.display()
    )]
    EventTooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The limit in bytes.
        max_bytes: u64,
    },
}

impl fmt::Debug for ValidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks a trace in the format of `chrome://tracing` as PyTorch writes it, `.json` or `.json.gz`: that Perfetto,
/// TensorBoard's trace plugin (torch-tb-profiler 0.4.3) and HTA (0.5) read all of it and get the right
/// numbers. Returns an empty list if they do.
///
/// Each [`Rule`] describes an input that one of the tools fails on; its documentation says how, and whether they survive it.
/// The first hundred violations of each rule are listed, errors first.
///
/// The file is read event by event. It may have [`DEFAULT_MAX_TRACE_BYTES`] after decompression; [`validate_with`]
/// accepts larger ones. Values may nest 127 levels deep.
///
/// # Errors
///
/// Returns an error if the file cannot be read or decompressed, or is too large. Invalid JSON is a violation
/// ([`Rule::Json`]).
///
/// # Examples
///
/// ```
/// use profiler_trace_validator::{Rule, validate};
///
/// let path = std::env::temp_dir().join(format!("broken-{}.json", std::process::id()));
/// std::fs::write(&path, r#"{"traceEvents": [{"ph": "X", "name": "forward", "ts": 1.5, "dur": -2}]}"#)?;
/// for violation in validate(&path)? {
///     assert_eq!(violation.rule, Rule::Slice);
///     println!("{violation}");
/// }
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn validate(path: impl AsRef<Path>) -> Result<Vec<Violation>, ValidateError> {
    validate_with(path, &ValidateOptions::default())
}

/// Checks a trace like [`validate`], with another size limit.
///
/// # Errors
///
/// The errors of [`validate`].
///
/// # Examples
///
/// ```
/// use profiler_trace_validator::{ValidateError, ValidateOptions, validate_with};
///
/// let path = std::env::temp_dir().join(format!("long-{}.json", std::process::id()));
/// std::fs::write(&path, r#"{"traceEvents": []}"#)?;
/// let result = validate_with(&path, &ValidateOptions::default().max_bytes(10));
/// assert!(matches!(result, Err(ValidateError::TooLarge { max_bytes: 10, .. })));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn validate_with(
    path: impl AsRef<Path>,
    options: &ValidateOptions,
) -> Result<Vec<Violation>, ValidateError> {
    let path = path.as_ref();
    let failed = |source| ValidateError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let is_gzip = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
    let checked = if is_gzip {
        check(MultiGzDecoder::new(file), *options)
    } else {
        check(file, *options)
    };
    checked.map_err(|trouble| match trouble {
        Trouble::Io(source) => failed(source),
        Trouble::Over(Over::Trace) => ValidateError::TooLarge {
            path: path.to_owned(),
            max_bytes: options.max_bytes,
        },
        Trouble::Over(Over::Value(max_bytes)) => ValidateError::EventTooLarge {
            path: path.to_owned(),
            max_bytes,
        },
        Trouble::Over(Over::Events) => ValidateError::TooManyEvents {
            path: path.to_owned(),
            max_events: options.max_events,
        },
    })
}

/// Why a trace was not read to its end.
enum Trouble {
    Io(io::Error),
    Over(Over),
}

fn check(trace: impl Read, options: ValidateOptions) -> Result<Vec<Violation>, Trouble> {
    let progress = ReadProgress::new(options.max_bytes, options.max_events);
    let mut checker = Checker::default();
    match read::read(trace, &progress, &mut checker) {
        Ok(()) => Ok(checker.finish(progress.rank())),
        Err(error) => match progress.over() {
            Some(over) => Err(Trouble::Over(over)),
            None if error.is_io() => Err(Trouble::Io(error.into())),
            None => Ok(vec![no_json(&error)]),
        },
    }
}

fn no_json(error: &serde_json::Error) -> Violation {
    let text = error.to_string();
    let what = match error.classify() {
        Category::Eof => format!("{text}: the file is cut off; copy or write it again"),
        Category::Data if text.starts_with("invalid type: sequence") => {
            "the file is a list of events, which Perfetto reads; TensorBoard and HTA need an object with the list `traceEvents`: \
             write one"
                .to_owned()
        }
        Category::Data => format!("{text}: write a file of that form"),
        _ => format!("{text}: the file is not valid JSON; write it again"),
    };
    Violation::of_file(Rule::Json, what)
}

#[cfg(test)]
fn validate_bytes(bytes: &[u8]) -> Vec<Violation> {
    check(bytes, ValidateOptions::default()).unwrap_or_else(|_| panic!("too large"))
}
