//! Where an event ends that is not valid.
//!
//! What is wrong with it may be a quote too many or too few, which would make texts of all that follows: a valid event must
//! not be lost with it. So a line in which a text does not end is read again without regard for quotes, since a text has no
//! line breaks. And an end is certain only if the brackets match, and no second event began before it.

use memchr::memchr;
use memchr::memmem;

/// The key that each event has once.
const KIND: &[u8] = b"\"ph\"";

/// The most brackets that are open in an event: valid ones have fewer.
const MAX_DEPTH: usize = 128;

/// The end of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The comma or bracket after it has this position.
    At(usize),
    /// It is not in the text.
    Beyond,
    /// What is wrong leaves open which bytes are the event.
    Unknown,
}

/// Returns the end of the event that a text begins with.
pub(super) fn end(text: &[u8]) -> End {
    let (mut open, mut at) = (Vec::new(), 0);
    let found = loop {
        let rest = &text[at..];
        let newline = memchr(b'\n', rest);
        let line = &rest[..newline.map_or(rest.len(), |newline| newline + 1)];
        let before = open.clone();
        let mut line_end = end_in_line(line, &mut open, true);
        if line_end == LineEnd::InText && newline.is_some() {
            open = before;
            line_end = end_in_line(line, &mut open, false);
        }
        match line_end {
            LineEnd::At(length) => break at + length,
            LineEnd::Mismatch => return End::Unknown,
            _ if newline.is_none() => return End::Beyond,
            _ => at += line.len(),
        }
    };
    let is_one = memmem::find_iter(&text[..found], KIND).nth(1).is_none();
    if found > 0 && is_one {
        End::At(found)
    } else {
        End::Unknown
    }
}

#[derive(Debug, PartialEq, Eq)]
enum LineEnd {
    At(usize),
    Mismatch,
    Open,
    /// In a text that has not ended.
    InText,
}

/// Looks for the end in one line. `open` are the brackets that are expected.
fn end_in_line(line: &[u8], open: &mut Vec<u8>, has_texts: bool) -> LineEnd {
    let (mut in_text, mut is_escaped) = (false, false);
    for (at, byte) in line.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' if has_texts => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' if open.len() == MAX_DEPTH => return LineEnd::Mismatch,
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b',' | b']' if open.is_empty() => return LineEnd::At(at),
            b'}' | b']' if open.pop() != Some(*byte) => return LineEnd::Mismatch,
            _ => {}
        }
    }
    if in_text {
        LineEnd::InText
    } else {
        LineEnd::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_before_the_comma_or_bracket_after_its_own() {
        for (event, rest) in [
            (r#"{"ts": nan}"#, ", 3]"),
            (r#"{"args": {"a": [1, nan], "b": "]},{"}}"#, "]"),
            (r#"{"name": "a\"]}, {"}"#, ","),
            ("{\n\"name\": \"a\"b\"c\"d\",\n\"args\": {}\n}\n", ",\n{}"),
            (
                "{\"name\": \"a\"b\", \"ph\": \"X\", \"args\": {}}",
                ",\n{\"ph\": \"X\"}\n]",
            ),
            ("nan", ", {}"),
        ] {
            let text = format!("{event}{rest}");
            assert_eq!(end(text.as_bytes()), End::At(event.len()), "{text}");
        }
    }

    #[test]
    fn an_end_that_is_not_certain_is_not_known() {
        for text in [
            "]",
            ", {}",
            r#"{"ts": nan}}, {}"#,
            r#"{"a": [1}, {}]"#,
            // The quote too many hides the end, up to the next one.
            r#"{"ph": "X", "name": "a"b"}, {"ph": "X", "name": "c"d"}, {"ph": "X"}]"#,
        ] {
            assert_eq!(end(text.as_bytes()), End::Unknown, "{text}");
        }
        assert_eq!(end(br#"{"ts": nan, "name": "a]"#), End::Beyond);
    }
}
