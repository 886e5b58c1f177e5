//! Reading files: any file that the program takes becomes an [`Input`].

mod limits;

use std::io;
use std::path::Path;

use profiler_runtime::report::{Summary, Timeline};

pub use self::limits::Limits;
use crate::error::Error;

/// What a file holds.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input {
    /// A summary that `PROFILER_SUMMARY` or [`Summary::to_json`] wrote.
    Summary(Box<Summary>),
    /// A trace of `profiler-runtime` or of PyTorch's profiler.
    Timeline(Box<Timeline>),
}

impl Input {
    /// Reads a file. It is decompressed if it is compressed, whatever its name is.
    #[allow(dead_code)]
    pub(crate) fn read(path: &Path, limits: Limits) -> Result<Self, Error> {
        Self::read_file(path, limits).map_err(|source| Error::input(path, source))
    }

    fn read_file(path: &Path, _limits: Limits) -> Result<Self, InputError> {
        std::fs::metadata(path)?;
        Err(InputError::Unknown)
    }
}

/// Why a file cannot be read. The message continues the name of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The system cannot read it.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is none of the files that the program reads.
    #[error(
        "is neither a summary nor a trace: give a file that PROFILER_SUMMARY or PROFILER_TRACE wrote, or a trace of PyTorch"
    )]
    Unknown,
}
