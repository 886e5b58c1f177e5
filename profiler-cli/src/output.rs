//! Standard output and standard error.

use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, StdoutLock, Write as _};

use crate::error::Error;

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
        self.text(&one_line(line))?;
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

/// Prints an error as one line on standard error.
pub(crate) fn complain(error: &Error) {
    let line = one_line(format_args!("profiler: {error}"));
    // If standard error is closed, the exit status remains.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Escapes control characters.
pub(crate) fn printable(text: &str) -> String {
    one_line(format_args!("{text}"))
}

/// Formats a message as one line: control characters, which names of files and functions may contain, are escaped.
fn one_line(message: fmt::Arguments<'_>) -> String {
    let mut line = String::new();
    for character in message.to_string().chars() {
        if character.is_control() {
            let _ = write!(line, "{}", character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_without_control_characters() {
        let line = one_line(format_args!("{}: é {}", "a\nb", "\u{1b}[2J\u{9b}"));
        assert_eq!(line, "a\\nb: é \\u{1b}[2J\\u{9b}");
    }
}
