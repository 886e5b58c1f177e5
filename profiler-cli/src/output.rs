//! Standard output and standard error.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, StdoutLock, Write as _};

use crate::error::Error;
use crate::printable::printable;

/// Standard output, buffered.
pub(crate) struct Stdout(BufWriter<StdoutLock<'static>>);

impl Stdout {
    pub(crate) fn new() -> Self {
        Self(BufWriter::new(io::stdout().lock()))
    }

    /// Writes text as it is.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Error> {
        self.0.write_all(text.as_bytes()).map_err(failed)
    }

    /// Writes a line without the control characters that a file may have brought.
    pub(crate) fn line(&mut self, line: fmt::Arguments<'_>) -> Result<(), Error> {
        self.text(&printable(line))?;
        self.text("\n")
    }

    /// Writes what is still buffered.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.0.flush().map_err(failed)
    }
}

fn failed(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Error::OutputClosed,
        _ => Error::Stdout(error),
    }
}

/// Prints an error, or a note that the output has no place for, as one line on standard error.
pub(crate) fn complain(what: &impl Display) {
    let line = printable(format_args!("profiler: {what}"));
    // If standard error is closed, the exit status remains.
    let _ = writeln!(io::stderr(), "{line}");
}
