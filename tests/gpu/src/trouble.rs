//! Why a check could not be carried to its end.

use cudarc::driver::DriverError;

/// What ends a check early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// Not a failure: the machine lacks what the check is about.
    #[error("{0}")]
    Skip(String),
    /// A call of the driver that the check needs.
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
    /// What a child process did instead of its work.
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
    /// What was expected to be there and is not.
    #[error("{0}")]
    Missing(String),
}
