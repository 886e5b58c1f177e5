//! Why a file cannot be read.

use std::io;

use super::kind::Converted;

/// Why a file cannot be read. The message continues the name of the file, and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The system cannot read it.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It has no content.
    #[error("is empty: the program that writes it may still run, or has failed")]
    Empty,
    /// It is none of the files that the program reads.
    #[error(
        "is neither a summary nor a trace: give a file that PROFILER_SUMMARY=FILE.json or PROFILER_TRACE wrote, or a trace \
         of PyTorch's profiler"
    )]
    Unknown,
    /// It was written for another program.
    #[error("is {0}, or give the summary or trace that it was made from")]
    Converted(Converted),
    /// It ends too early.
    #[error("is cut off: copy it again, or wait until the program has written it")]
    Truncated,
    /// It is compressed, and the compressed data is damaged.
    #[error("is damaged: {0}; copy or write it again")]
    Damaged(io::Error),
    /// It is no JSON, or not of the expected structure.
    #[error("line {line}, column {column}: {reason}; write the file again")]
    Json {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The mistake there.
        reason: String,
    },
    /// It is too large.
    #[error(
        "has more than {max_bytes} bytes after decompression: raise --max-bytes if the file is trusted, or record a shorter \
         window"
    )]
    TooLarge {
        /// The limit in bytes.
        max_bytes: u64,
    },
    /// All of its events are too large, or another value that is kept is.
    #[error(
        "has an event of more than {max_bytes} bytes, which no profiler writes: see that it is a trace"
    )]
    EventTooLarge {
        /// The limit in bytes.
        max_bytes: u64,
    },
    /// It has too many events.
    #[error(
        "has more than {max_events} events: raise --max-events if there is memory for more, or record a shorter window"
    )]
    TooManyEvents {
        /// The limit.
        max_events: u64,
    },
    /// Its events take much more memory than bytes in the file.
    #[error(
        "would take more than {max_bytes} bytes of memory, far more than its size, which no profiler's trace does: see that it is \
         one"
    )]
    TooMuchMemory {
        /// The limit in bytes.
        max_bytes: u64,
    },
    /// It has too many different names.
    #[error(
        "has more than {max_bytes} bytes of different names: use names that do not contain numbers of calls"
    )]
    TooManyNames {
        /// The limit in bytes.
        max_bytes: usize,
    },
    /// What it lists takes too much memory.
    #[error(
        "has rows, notes and other elements that take more than {max_bytes} bytes of memory, which no profiler writes: see that \
         it is a summary"
    )]
    TooHeavy {
        /// The limit in bytes.
        max_bytes: usize,
    },
    /// A part of it cannot be read, and the whole is needed.
    #[error("is not whole: {0}; --partial takes what can be read")]
    Partial(String),
    /// Its times, taken together, cannot be right.
    #[error("{0}; write the trace again")]
    Clock(&'static str),
}

impl InputError {
    /// Returns the error of a parser.
    pub(super) fn of_json(error: serde_json::Error) -> Self {
        match error.classify() {
            serde_json::error::Category::Eof => Self::Truncated,
            serde_json::error::Category::Io => Self::of_io(error.into()),
            _ => {
                let reason = error.to_string();
                let position = format!(" at line {} column {}", error.line(), error.column());
                let reason = reason.strip_suffix(&position).unwrap_or(&reason);
                Self::Json {
                    line: error.line(),
                    column: error.column(),
                    reason: reason.to_owned(),
                }
            }
        }
    }

    /// Returns the error of a reader.
    pub(crate) fn of_io(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            // Decompression alone returns these.
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Self::Damaged(error),
            _ => Self::Io(error),
        }
    }
}
