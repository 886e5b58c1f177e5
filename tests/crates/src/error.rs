//! What can go wrong with the tool itself; a test that changed its result is not an error but a finding.

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
    #[error("cannot parse {}: {source}", path.display())]
    Syntax { path: PathBuf, source: syn::Error },
    #[error("`cargo {0}` failed; its output is above")]
    Cargo(String),
    #[error("`cargo {0}` printed something else than JSON: {1}")]
    Message(String, serde_json::Error),
    #[error("Cargo.toml must depend on one version of {0}, as `{0} = \"=1.2.3\"`")]
    NotADependency(&'static str),
    #[error("there is no crate {0} here; the names are: {1}")]
    UnknownCrate(String, String),
    #[error("usage: annotated-crates [--update-lock] [CRATE …]")]
    Usage,
}

impl Error {
    /// What was being done to a file or folder when it failed.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}
