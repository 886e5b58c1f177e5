use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use profiler_host::debug_with_message;

/// An error of a logger that could not accept or save a value.
///
/// `Debug` shows the message of `Display` too, since a `main` that returns the error prints it with `Debug`.
///
/// # Examples
///
/// ```
/// use profiler_log::LogError;
///
/// let error = LogError::other("the metrics server is gone");
/// assert_eq!(error.to_string(), "the metrics server is gone");
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A file or folder of the log could not be created or written.
    #[error(
        "cannot write the log in {}: {source}; \
         check that the folder can be written and the disk has room",
        path.display()
    )]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The logger does not accept this value; it accepts others.
    #[error("the logger refused a value: {0}")]
    Refused(String),
    /// The logger accepts no values any more.
    #[error("the logger is closed: {0}")]
    Closed(String),
    /// Any other error; see [`LogError::other`].
    #[error("{0}")]
    Other(Box<dyn Error + Send + Sync>),
}

impl LogError {
    /// Creates an error for a logger of your own, with any message that can be displayed.
    pub fn other(reason: impl fmt::Display) -> Self {
        Self::Other(reason.to_string().into())
    }

    /// Creates an error for a failed operation on a file or folder of the log.
    pub fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io {
            path: path.as_ref().to_owned(),
            source,
        }
    }
}

debug_with_message!(LogError: Io, Refused, Closed, Other);
