//! The terminal that a table is shown on: its width, and whether it shows colours.

use std::io::{self, IsTerminal};

use profiler_host::process::fork;

/// The width of a table that is not shown on a terminal.
pub(crate) const PIPE: usize = 160;

/// A standard stream that a table is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputStream {
    /// Returns the width of a table on this stream: `COLUMNS`, the width of the terminal, or 160.
    pub fn width(self) -> usize {
        width_of(variable("COLUMNS").as_deref(), size::of(self))
    }

    /// Returns `true` if a table on this stream has colours.
    pub fn has_color(self) -> bool {
        has_color(variable, self.is_terminal())
    }

    /// Returns `true` if the stream is a terminal.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        }
    }
}

/// Returns the width of a table whose destination is not known: `COLUMNS`, the width of the first standard stream that
/// is a terminal, or 160.
pub fn width() -> usize {
    width_of(variable("COLUMNS").as_deref(), size::of_any())
}

/// Returns `false` if the language of the environment says that the terminal has no characters but those of ASCII.
pub(crate) fn has_blocks() -> bool {
    is_unicode(variable)
}

/// The widths of terminals.
#[cfg(all(feature = "terminal", unix))]
mod size {
    use std::mem::MaybeUninit;

    use libc::{STDERR_FILENO, STDIN_FILENO, STDOUT_FILENO, c_int, winsize};

    use super::OutputStream;

    pub(super) fn of(stream: OutputStream) -> Option<u16> {
        of_descriptor(match stream {
            OutputStream::Stdout => STDOUT_FILENO,
            OutputStream::Stderr => STDERR_FILENO,
        })
    }

    /// Returns the width of the first standard stream that is a terminal.
    pub(super) fn of_any() -> Option<u16> {
        let streams = [STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO];
        streams.into_iter().find_map(of_descriptor)
    }

    fn of_descriptor(descriptor: c_int) -> Option<u16> {
        let mut size = MaybeUninit::<winsize>::zeroed();
        // SAFETY: `size` is valid for the write. A descriptor that is closed or no terminal is an error.
        let result = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, size.as_mut_ptr()) };
        if result != 0 {
            return None;
        }
        // SAFETY: the fields are integers, and were zeros before the call.
        let width = unsafe { size.assume_init() }.ws_col;
        (width > 0).then_some(width)
    }

    #[cfg(all(test, target_os = "linux", not(miri)))]
    mod tests {
        use std::fs::File;
        use std::os::fd::AsRawFd;

        use super::*;

        #[test]
        fn a_terminal_has_the_width_that_was_set() {
            // Where there are no terminals at all, such as in a container without `devpts`, there is none to ask.
            let Ok(terminal) = File::options().read(true).write(true).open("/dev/ptmx") else {
                return;
            };
            assert_eq!(
                of_descriptor(terminal.as_raw_fd()),
                None,
                "it has no size yet"
            );
            let size = winsize {
                ws_row: 40,
                ws_col: 132,
                ws_xpixel: 0,
                ws_ypixel: 0,
            };
            // SAFETY: the descriptor is open, and `size` is read during the call.
            let result =
                unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
            assert_eq!(result, 0);
            assert_eq!(of_descriptor(terminal.as_raw_fd()), Some(132));
        }

        #[test]
        fn what_is_no_terminal_has_no_width() {
            let file = File::open("/dev/null").expect("every system has it");
            assert_eq!(of_descriptor(file.as_raw_fd()), None);
            assert_eq!(of_descriptor(-1), None);
        }
    }
}

/// The widths of consoles.
#[cfg(all(feature = "terminal", windows))]
mod size {
    use std::io;

    use terminal_size::{terminal_size, terminal_size_of};

    use super::OutputStream;

    pub(super) fn of(stream: OutputStream) -> Option<u16> {
        let size = match stream {
            OutputStream::Stdout => terminal_size_of(io::stdout()),
            OutputStream::Stderr => terminal_size_of(io::stderr()),
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
    pub(super) fn of(_: super::OutputStream) -> Option<u16> {
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

/// Decides by the variables that say which characters there are; the first that is set counts. Where none is, most terminals
/// have all.
fn is_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locales = ["LC_ALL", "LC_CTYPE", "LANG"];
    let mut locales = locales.into_iter().filter_map(variable);
    let Some(locale) = locales.find(|locale| !locale.is_empty()) else {
        return true;
    };
    let locale = locale.to_lowercase();
    let is_ascii = locale == "c" || locale == "posix";
    let other = locale.split_once('.').is_some_and(|(_, charset)| {
        let charset = charset.split('@').next().unwrap_or_default();
        !matches!(charset, "utf-8" | "utf8")
    });
    !is_ascii && !other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_says_which_characters_there_are() {
        let unicode = |set: &[(&str, &str)]| {
            is_unicode(|name| {
                let found = set.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        for locale in ["C.UTF-8", "en_US.UTF-8", "de_DE.utf8@euro", "de_DE", ""] {
            assert!(unicode(&[("LANG", locale)]), "{locale}");
        }
        for locale in ["C", "POSIX", "en_US.ISO-8859-1"] {
            assert!(!unicode(&[("LANG", locale)]), "{locale}");
        }
        assert!(unicode(&[]));
        assert!(!unicode(&[("LANG", "C.UTF-8"), ("LC_ALL", "C")]));
        assert!(unicode(&[("LC_ALL", ""), ("LANG", "C.UTF-8")]));
    }

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
