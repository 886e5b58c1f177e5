//! JSON (RFC 8259).

use std::fmt::Write;

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

/// Formats a string with its quotes.
pub(crate) fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            char if u32::from(char) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(char));
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(string("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\nd\\u0001é\"");
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
