//! Errors of the tool itself. A test whose result changed is a finding, not an error.

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
    #[error("`cargo {0}` printed invalid JSON: {1}")]
    Message(String, serde_json::Error),
    #[error("Cargo.toml must depend on one version of {0}, as `{0} = \"=1.2.3\"`")]
    NotADependency(&'static str),
    #[error("{} is a workspace; give the path of a package", .0.display())]
    NotAPackage(PathBuf),
    #[error("no package {0}; give a path, or one of the names {1}")]
    UnknownPackage(String, String),
    #[error("crates.lock covers the listed packages only; run --update-lock without a path")]
    NotLocked,
    #[error("usage: annotated-crates [--update-lock] [CRATE | PATH …]")]
    Usage,
}

impl Error {
    /// The operation on a file or folder that failed.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}
