//! Why a file could not be written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a summary or a trace could not be written to a file.
///
/// `Debug` prints the same text as `Display`, since a `main` that returns the error prints it with `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The file could not be created or written. A file that existed before is unchanged.
    #[error(
        "cannot write {}: {source}; check that its folder is there and can be written and the disk has room",
        path.display()
    )]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl ExportError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Io { path, source }
    }
}

impl fmt::Debug for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
