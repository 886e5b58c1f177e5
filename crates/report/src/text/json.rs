//! JSON (RFC 8259).

use std::fmt::Write;

use profiler_host::diagnostics::is_harmful;

use super::field::{Field, FieldValue};

/// Formats an object.
pub(crate) fn object(fields: impl IntoIterator<Item = Field>) -> String {
    let members: Vec<String> = fields.into_iter().map(|field| member(&field)).collect();
    format!("{{{}}}", members.join(","))
}

/// Formats a field as a member of an object.
pub(super) fn member(field: &Field) -> String {
    let value = match field.value() {
        FieldValue::Raw(value) => value.clone(),
        FieldValue::Text(text) => string(text),
        FieldValue::Missing => "null".to_owned(),
    };
    format!("{}:{value}", string(field.key()))
}

/// Formats an array of values that are JSON already.
pub(crate) fn array(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("[{}]", items.join(","))
}

/// Formats an array of values that are JSON already, each on its own line.
pub(crate) fn lines(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("[{}]", items.join(",\n"))
}

/// Formats a string with its quotes. Its text has no character that could act on a terminal.
pub(crate) fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            char => push(&mut quoted, char),
        }
    }
    quoted.push('"');
    quoted
}

/// Escapes what another writer of JSON left as it is: control characters, and characters that a terminal does not show. Outside of
/// strings, there are none but the ends of lines.
pub fn escape(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for char in json.chars() {
        match char {
            '\n' => escaped.push('\n'),
            char => push(&mut escaped, char),
        }
    }
    escaped
}

/// Appends a character of a string.
fn push(text: &mut String, char: char) {
    if char.is_ascii_graphic() || char == ' ' || !is_harmful(char) {
        text.push(char);
        return;
    }
    for unit in char.encode_utf16(&mut [0; 2]) {
        let _ = write!(text, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(string("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\nd\\u0001é\"");
    }

    #[test]
    fn characters_that_terminals_obey_or_hide_are_escaped() {
        let text = "\u{7f}\u{9b}\u{202e}\u{feff}\u{e0041}\u{200d}é";
        let escaped = "\"\\u007f\\u009b\\u202e\\ufeff\\udb40\\udc41\u{200d}é\"";
        assert_eq!(string(text), escaped);
        assert_eq!(
            escape(&format!("{{\n\"{text}\"}}")),
            format!("{{\n{escaped}}}")
        );
    }

    #[test]
    fn objects_and_arrays_are_valid_json() {
        let inner = array(["a", "b"].map(string));
        let text = object([Field::raw("list", inner), Field::missing("nothing")]);
        assert_eq!(text, r#"{"list":["a","b"],"nothing":null}"#);
        assert_eq!(
            lines([text.clone(), text.clone()]),
            format!("[{text},\n{text}]")
        );
        assert_eq!(array([]), "[]");
        assert_eq!(object([]), "{}");
    }
}
