//! Standard output and standard error.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io::{self, BufWriter, StdoutLock, Write as _};

use profiler_host::diagnostics::printable;

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

    /// Writes a table, or other text for people that is printable.
    pub(crate) fn table(&mut self, text: &str) -> Result<(), Error> {
        self.text(&without_commands(text))
    }

    /// Writes a line without the control characters that a file may have brought.
    pub(crate) fn line(&mut self, line: fmt::Arguments<'_>) -> Result<(), Error> {
        self.table(&printable(&line.to_string()))?;
        self.text("\n")
    }

    /// Writes what is still buffered.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.0.flush().map_err(failed)
    }
}

/// What begins a command in the logs of jobs, wherever it stands in a line.
const COMMANDS: [(&str, &str); 2] = [("##[", "#\u{fffd}["), ("##vso[", "#\u{fffd}vso[")];

/// Changes what is a command in the logs of GitHub's and Azure's jobs, as a name may be: a line that begins with two colons, and
/// what begins with two number signs anywhere.
fn without_commands(text: &str) -> Cow<'_, str> {
    let is_command = |line: &str| line.trim_start().starts_with("::");
    let has_command = COMMANDS.iter().any(|(command, _)| text.contains(command));
    if !has_command && !text.split('\n').any(is_command) {
        return Cow::Borrowed(text);
    }
    let text = COMMANDS
        .iter()
        .fold(text.to_owned(), |text, (command, changed)| {
            text.replace(command, changed)
        });
    let line = |line: &str| {
        if is_command(line) {
            line.replacen("::", "\u{fffd}:", 1)
        } else {
            line.to_owned()
        }
    };
    let lines: Vec<String> = text.split('\n').map(line).collect();
    Cow::Owned(lines.join("\n"))
}

fn failed(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Error::OutputClosed,
        _ => Error::Stdout(error),
    }
}

/// Prints an error, or a note that the output has no place for, as one line on standard error.
pub(crate) fn complain(what: &impl Display) {
    let line = printable(&format!("profiler: {what}"));
    // If standard error is closed, the exit status remains.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints a printable text of several lines on standard error.
pub(crate) fn complain_in_lines(text: &str) {
    let _ = write!(io::stderr(), "{}", without_commands(text));
}

/// Prints a printable text of several lines on standard output.
pub(crate) fn answer(text: &str) -> Result<(), Error> {
    let mut output = Stdout::new();
    output.text(text)?;
    output.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_a_command_of_a_job() {
        assert_eq!(without_commands("a::b\n c::d"), "a::b\n c::d");
        let lines = "a\n ::warning::x\n::add-mask::y\n";
        let changed = "a\n \u{fffd}:warning::x\n\u{fffd}:add-mask::y\n";
        assert_eq!(without_commands(lines), changed);
        let inside = "1 ms  ##[add-mask]x ##vso[task.setvariable]y";
        let changed = "1 ms  #\u{fffd}[add-mask]x #\u{fffd}vso[task.setvariable]y";
        assert_eq!(without_commands(inside), changed);
    }
}
