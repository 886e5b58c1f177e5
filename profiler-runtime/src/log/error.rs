use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a logger could not take or keep a value.
///
/// It is shown in words by `Debug` too: that is what a `main` that returns it prints.
///
/// # Examples
///
/// ```
/// use profiler_runtime::LogError;
///
/// let error = LogError::other("the metrics server is gone");
/// assert_eq!(error.to_string(), "the metrics server is gone");
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A file or folder of the log could not be made or written.
    #[error(
        "cannot write the log in {}: {source}; \
         check that the folder can be written and the disk has room",
        path.display()
    )]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The logger takes other values, but not this one.
    #[error("the logger refused a value: {0}")]
    Refused(String),
    /// The logger takes nothing, now and later.
    #[error("the logger is closed: {0}")]
    Closed(String),
    /// Anything else; see [`LogError::other`].
    #[error("{0}")]
    Other(Box<dyn Error + Send + Sync>),
}

impl LogError {
    /// An error in a logger of your own, from any displayable reason.
    pub fn other(reason: impl fmt::Display) -> Self {
        Self::Other(reason.to_string().into())
    }

    /// A failed operation on a file or folder of the log.
    pub fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io {
            path: path.as_ref().to_owned(),
            source,
        }
    }
}

impl fmt::Debug for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
