//! Text from files, as terminals may show it.

use std::fmt::{Display, Write as _};

/// Formats text as one line: control characters, which names of files and functions may contain, are escaped.
pub(crate) fn printable(text: impl Display) -> String {
    let mut line = String::new();
    for character in text.to_string().chars() {
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
        let line = printable(format_args!("{}: é {}", "a\nb", "\u{1b}[2J\u{9b}"));
        assert_eq!(line, "a\\nb: é \\u{1b}[2J\\u{9b}");
    }
}
