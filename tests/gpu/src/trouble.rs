//! The reasons why a check did not complete.

use cudarc::driver::DriverError;

/// A reason that ends a check early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// Not a failure: the machine lacks what the check needs.
    #[error("{0}")]
    Skip(String),
    /// A driver call that the check needs failed.
    #[error("{call} returned {code} ({name})")]
    Driver {
        call: &'static str,
        code: u32,
        name: String,
    },
    #[error("cudarc: {0}")]
    Cudarc(#[from] DriverError),
    #[error("the library lacks a function: {0}")]
    Symbol(#[from] libloading::Error),
    #[error("{call} of {library} returned {code}")]
    Library {
        library: &'static str,
        call: &'static str,
        code: i32,
    },
    /// A child process failed.
    #[error("the child `{child}` {what}; its standard error: {stderr}")]
    Child {
        child: String,
        what: String,
        stderr: String,
    },
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Something expected was missing.
    #[error("{0}")]
    Missing(String),
}
