//! Reading files: any file that the program takes becomes an [`Input`].

mod encoding;
mod error;
mod invalid_event;
mod kind;
mod limits;
mod repair;
mod source;
mod summary;
mod trace;
mod weighed;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use profiler_report::{Summary, Timeline};

pub use self::error::InputError;
pub use self::kind::Converted;
use self::kind::Kind;
pub use self::limits::Limits;
use self::source::{BEGINNING, Counted, Source};
use crate::progress::Progress;

/// The content of a file.
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
    pub(crate) fn read(path: &Path, limits: Limits) -> Result<Self, InputError> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            return Err(InputError::Io(io::ErrorKind::IsADirectory.into()));
        }
        let progress = Progress::new(&format!("reading {}", path.display()), about.len());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Self::from_reader(Counted::new(file, progress), &name, limits)
    }

    /// Reads the content of a file. `name` becomes the title of a time line.
    ///
    /// # Errors
    ///
    /// Returns an error if the content cannot be read, is neither a summary nor a trace, or exceeds a limit.
    pub fn from_reader(content: impl Read, name: &str, limits: Limits) -> Result<Self, InputError> {
        let mut source = Source::new(content, limits.max_bytes)?;
        match Kind::of(source.beginning()?) {
            None => Err(InputError::Empty),
            Some(Kind::Summary) => Ok(Self::Summary(Box::new(summary::read(source)?))),
            Some(Kind::Trace | Kind::Object) => {
                let timeline = trace::read(source, name, limits)?;
                Ok(Self::Timeline(Box::new(timeline)))
            }
            Some(Kind::Converted(converted)) => Err(InputError::Converted(converted)),
            Some(Kind::Unknown) => Err(InputError::Unknown),
        }
    }
}

/// What the beginning of a file says that it is, whatever is wrong with the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    Summary,
    Trace,
    Other,
}

impl Beginning {
    /// Looks at the beginning of a file.
    pub(crate) fn of(path: &Path, max_bytes: u64) -> Result<Self, InputError> {
        let mut source = Source::new(File::open(path)?, max_bytes)?;
        let beginning = source.beginning()?;
        Ok(match Kind::of(beginning) {
            Some(Kind::Summary) => Self::Summary,
            Some(Kind::Trace) => Self::Trace,
            // What would make it a trace may come later.
            Some(Kind::Object) if beginning.len() == BEGINNING => Self::Trace,
            _ => Self::Other,
        })
    }
}
