//! The terminal that a table is shown on: its width, and whether it shows colours.

use std::io::{self, IsTerminal};

use crate::process::fork;

/// The width of a table that is not shown on a terminal.
pub(in crate::report) const PIPE: usize = 160;

/// A standard stream that a table is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    /// Returns the width of a table on this stream: `COLUMNS`, the width of the terminal, or 160.
    pub(crate) fn width(self) -> usize {
        width_of(variable("COLUMNS").as_deref(), size::of(self))
    }

    /// Returns `true` if a table on this stream has colours.
    pub(crate) fn has_color(self) -> bool {
        has_color(variable, self.is_terminal())
    }

    /// Returns `true` if the stream is a terminal.
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        }
    }
}

/// Returns the width of a table whose destination is not known: `COLUMNS`, the width of the first standard stream that
/// is a terminal, or 160.
pub(in crate::report) fn width() -> usize {
    width_of(variable("COLUMNS").as_deref(), size::of_any())
}

/// The widths of terminals.
#[cfg(all(feature = "terminal", any(unix, windows)))]
mod size {
    use std::io;

    use terminal_size::{terminal_size, terminal_size_of};

    use super::Stream;

    pub(super) fn of(stream: Stream) -> Option<u16> {
        let size = match stream {
            Stream::Stdout => terminal_size_of(io::stdout()),
            Stream::Stderr => terminal_size_of(io::stderr()),
        };
        size.map(|(width, _)| width.0)
    }

    /// Returns the width of the first standard stream that is a terminal.
    pub(super) fn of_any() -> Option<u16> {
        terminal_size().map(|(width, _)| width.0)
    }
}

/// No terminal has a width.
#[cfg(not(all(feature = "terminal", any(unix, windows))))]
mod size {
    pub(super) fn of(_: super::Stream) -> Option<u16> {
        None
    }

    pub(super) fn of_any() -> Option<u16> {
        None
    }
}

/// Reads a variable of the environment; a forked child reads none, because another thread may have held the lock of the
/// environment at the fork.
fn variable(name: &str) -> Option<String> {
    if fork::is_child() {
        return None;
    }
    std::env::var(name).ok()
}

fn width_of(columns: Option<&str>, terminal: Option<u16>) -> usize {
    let columns = columns.and_then(|columns| columns.trim().parse().ok());
    let terminal = terminal.map(usize::from);
    [columns, terminal]
        .into_iter()
        .flatten()
        .find(|width| *width > 0)
        .unwrap_or(PIPE)
}

/// Decides as <https://no-color.org> and <https://bixense.com/clicolors> say.
fn has_color(variable: impl Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
    let is = |name: &str, test: fn(&str) -> bool| variable(name).is_some_and(|value| test(&value));
    if is("NO_COLOR", |value| !value.is_empty()) {
        return false;
    }
    if is("CLICOLOR_FORCE", |value| !value.is_empty() && value != "0") {
        return true;
    }
    is_terminal && !is("CLICOLOR", |value| value == "0") && !is("TERM", |value| value == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_before_the_terminal_and_both_before_the_width_of_pipes() {
        let terminal = Some(100);
        assert_eq!(width_of(Some("132"), terminal), 132);
        assert_eq!(width_of(Some(" 90 "), None), 90);
        for invalid in ["", "0", "-1", "wide"] {
            assert_eq!(width_of(Some(invalid), terminal), 100);
        }
        assert_eq!(width_of(None, Some(0)), PIPE, "some terminals have no size");
        assert_eq!(width_of(None, None), PIPE);
    }

    #[test]
    fn variables_turn_colours_on_and_off() {
        let colored = |set: &[(&str, &str)], is_terminal| {
            let variable = |name: &str| {
                let found = set.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            has_color(variable, is_terminal)
        };
        assert!(colored(&[], true) && !colored(&[], false));
        assert!(
            colored(&[("NO_COLOR", "")], true),
            "an empty value counts as unset"
        );
        assert!(!colored(
            &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")],
            true
        ));
        assert!(colored(
            &[("CLICOLOR_FORCE", "1"), ("CLICOLOR", "0")],
            false
        ));
        assert!(!colored(&[("CLICOLOR_FORCE", "0")], false));
        assert!(!colored(&[("CLICOLOR", "0")], true) && colored(&[("CLICOLOR", "1")], true));
        assert!(!colored(&[("TERM", "dumb")], true));
    }
}
