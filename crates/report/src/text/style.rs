//! Colours of a table.

/// The colours of a table, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) has_color: bool,
}

impl Style {
    /// Formats a column's title.
    pub(super) fn title(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Formats lines, names of groups and everything else that is not a value.
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Formats the label of the row that took the most time.
    pub(super) fn hottest(self, text: &str) -> String {
        self.paint("1;33", text)
    }

    /// Formats the time in which a device worked.
    pub(crate) fn busy(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Formats what belongs to one of several functions, each in a colour of its own.
    pub(crate) fn series(self, number: usize, text: &str) -> String {
        const CODES: [&str; 6] = ["36", "35", "32", "34", "31", "37"];
        self.paint(CODES[number % CODES.len()], text)
    }

    /// Formats a value, so that the number stands out from its unit.
    pub(super) fn value(self, text: &str) -> String {
        let number = text.trim_end_matches(|char: char| !char.is_ascii_digit());
        let starts_with_number = text
            .trim_start_matches('-')
            .starts_with(|char: char| char.is_ascii_digit());
        match text.strip_prefix(number) {
            Some(unit) if starts_with_number && !unit.is_empty() => {
                number.to_owned() + &self.dim(unit)
            }
            _ => text.to_owned(),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.has_color && !text.trim().is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_dimmed() {
        let style = Style { has_color: true };
        assert_eq!(style.value("2.29 s"), "2.29\u{1b}[2m s\u{1b}[0m");
        assert_eq!(style.value("66.67%"), "66.67\u{1b}[2m%\u{1b}[0m");
        for text in ["150/100", "12", "-", "launch-bound"] {
            assert_eq!(style.value(text), text);
        }
    }

    #[test]
    fn nothing_is_painted_without_colours() {
        let style = Style { has_color: false };
        for text in [
            style.value("2.29 s"),
            style.dim("2.29 s"),
            style.title("2.29 s"),
            style.hottest("2.29 s"),
        ] {
            assert_eq!(text, "2.29 s");
        }
    }
}
