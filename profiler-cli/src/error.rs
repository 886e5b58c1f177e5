//! Why a command failed.

use std::io;
use std::path::{Path, PathBuf};

use profiler_trace_validator::ValidateError;

use crate::exit::{Exit, USAGE};
use crate::input::InputError;

/// Why a command failed. The message is one line, without the name of the program, and says what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Input { path: PathBuf, source: InputError },
    /// A file cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    #[allow(dead_code)]
    Write { path: PathBuf, source: io::Error },
    /// A file is readable, and not what the command needs.
    #[error("{}: {reason}", path.display())]
    Refused { path: PathBuf, reason: String },
    /// Standard output cannot be written.
    #[error("standard output: cannot be written: {0}")]
    Stdout(io::Error),
    /// The reader of standard output has closed it. This is no failure, and is not printed.
    #[error("standard output was closed")]
    OutputClosed,
    /// A trace cannot be validated.
    #[error("{0}")]
    Validate(ValidateError),
    /// The arguments are valid one by one, and not together.
    #[error("{0}")]
    #[allow(dead_code)]
    Usage(String),
}

impl Error {
    pub(crate) fn input(path: &Path, source: InputError) -> Self {
        Self::Input {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            _ => Exit::Unclear.code(),
        }
    }
}
