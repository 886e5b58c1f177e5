//! Why a command failed.

use std::io;
use std::path::{Path, PathBuf};

use profiler_report::ExportError;
use profiler_sensors::SensorError;

use crate::exit::{Exit, USAGE};
use crate::input::InputError;

/// Why a command failed. The message is one line, without the name of the program, and says what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Input { path: PathBuf, source: InputError },
    /// A file cannot be written.
    #[error("{}: cannot be written: {source}; see that its folder exists and has room", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// A file is readable, and not what the command needs.
    #[error("{}: {reason}", path.display())]
    Refused { path: PathBuf, reason: String },
    /// A file has not what its format needs.
    #[error("{}: {source}", path.display())]
    Export { path: PathBuf, source: ExportError },
    /// The sensors of the GPUs cannot be read.
    #[error("{0}")]
    Sensors(SensorError),
    /// Standard output cannot be written.
    #[error("standard output: cannot be written: {0}")]
    Stdout(io::Error),
    /// The reader of standard output has closed it. This is no failure, and is not printed.
    #[error("standard output was closed")]
    OutputClosed,
    /// The arguments are valid one by one, and not together.
    #[error("{0}")]
    Usage(String),
    /// A program that was run failed; its exit status becomes that of this program.
    #[error("{message}")]
    Program { code: u8, message: String },
}

impl Error {
    pub(crate) fn input(path: &Path, source: InputError) -> Self {
        Self::Input {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns the error of a writer. It may have written elsewhere before the file gets its name.
    pub(crate) fn export(path: &Path, error: ExportError) -> Self {
        match error {
            ExportError::Io { source, .. } => Self::write(path, source),
            source => Self::Export {
                path: path.to_owned(),
                source,
            },
        }
    }

    pub(crate) const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            Self::Program { code, .. } => *code,
            _ => Exit::Unclear.code(),
        }
    }
}
