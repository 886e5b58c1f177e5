//! CSV (RFC 4180).

use profiler_host::diagnostics::is_harmful;

use super::field::{Field, FieldValue};

/// Formats a header line with the keys of the fields.
pub(crate) fn header(fields: &[Field]) -> String {
    let keys: Vec<&str> = fields.iter().map(Field::key).collect();
    keys.join(",") + "\r\n"
}

/// Formats a line with the values of the fields.
pub(crate) fn line(fields: &[Field]) -> String {
    let cells: Vec<String> = fields.iter().map(cell).collect();
    cells.join(",") + "\r\n"
}

/// Formats the value of a field as a cell.
pub(super) fn cell(field: &Field) -> String {
    match field.value() {
        FieldValue::Raw(value) => value.clone(),
        FieldValue::Text(text) => quoted(text),
        FieldValue::Missing => String::new(),
    }
}

/// The characters that begin a formula in a spreadsheet, including their full-width forms.
const FORMULA: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// Formats a text as one cell, whatever it contains.
///
/// A text that a spreadsheet would evaluate as a formula gets an apostrophe in front, and quotes. A text with
/// apostrophes in front of such a formula gets one more: removing one from each cell in which a formula follows the
/// apostrophes restores every text. Numbers are not passed here.
///
/// A table may be printed: characters that act on a terminal, or that it does not show, are replaced by U+FFFD, except tabs and
/// the ends of lines.
pub(crate) fn quoted(text: &str) -> String {
    let text = &*shown(text);
    let is_formula = text.trim_start_matches('\'').starts_with(FORMULA);
    let apostrophe = if is_formula { "'" } else { "" };
    // Some spreadsheets separate cells at semicolons and tabs too.
    if is_formula || text.contains([',', ';', '\t', '"', '\n', '\r']) {
        format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Replaces what must not reach a terminal. A carriage return is the end of a line only before the other character of one.
fn shown(text: &str) -> String {
    let mut rest = text.chars().peekable();
    let mut shown = String::with_capacity(text.len());
    while let Some(char) = rest.next() {
        let is_kept = match char {
            '\n' | '\t' => true,
            '\r' => rest.peek() == Some(&'\n'),
            char => !is_harmful(char),
        };
        shown.push(if is_kept { char } else { '\u{fffd}' });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_terminals_obey_or_hide_are_replaced() {
        let text = "a\u{1b}]0;x\u{7}\u{9b}\u{202e}\u{feff}\rb\tc\r\nd";
        let cell = "\"a\u{fffd}]0;x\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}b\tc\r\nd\"";
        assert_eq!(quoted(text), cell);
    }

    #[test]
    fn header_and_lines_have_the_same_columns() {
        let fields = [Field::text("name", "a;b"), Field::raw("calls", 3)];
        assert_eq!(header(&fields), "name,calls\r\n");
        assert_eq!(line(&fields), "\"a;b\",3\r\n");
    }

    #[test]
    fn formulas_are_defused_and_can_be_restored() {
        for (text, cell) in [
            ("plain", "plain"),
            ("=1+1", "\"'=1+1\""),
            ("'=1", "\"''=1\""),
            ("'quoted'", "'quoted'"),
            ("\u{ff1d}1", "\"'\u{ff1d}1\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
        ] {
            assert_eq!(quoted(text), cell);
        }
    }
}
