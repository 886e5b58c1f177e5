//! Errors of the tool itself. A function that the attribute changes is a finding, not an error.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("cannot {what} {}", path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("`cargo {0}` failed; its output is above")]
    Cargo(String),
    #[error("invalid JSON from {0}: {1}")]
    Json(String, serde_json::Error),
    #[error("the generator wrote functions that do not compile:\n{0}")]
    Generator(String),
    #[error("usage: generated-functions [--seed N] [--count N]")]
    Usage,
}

impl Error {
    /// The operation on a file or folder that failed.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}
