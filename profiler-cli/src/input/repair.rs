//! Values that are no valid JSON, and mean only one thing all the same.
//!
//! Tools write texts without escaping them (paths of Windows, control characters, other encodings), numbers that JSON does not have
//! (`NaN`, `inf`), and commas before a closing bracket.

/// What the mistakes of a value come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// They were mended. The value takes so many bytes of the original.
    Mended { length: usize, text: Vec<u8> },
    /// The value does not end in the text.
    Beyond,
    /// What the value means is not certain.
    Hopeless,
}

/// Mends the value that a text begins with.
///
/// A quote too many makes words of what are texts, and texts of what lies between them: then nothing is certain, and no more is
/// looked at. So a file with many such values is not read anew for each.
pub(super) fn repair(text: &[u8]) -> Repair {
    let mut mended = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        let Some(byte) = text.get(at).copied() else {
            return Repair::Beyond;
        };
        let is_alone = depth == 0;
        match byte {
            b'"' => {
                let Some(end) = end_of_text(&text[at + 1..]) else {
                    return Repair::Beyond;
                };
                let end = at + 1 + end;
                if text[at..end].contains(&b'\n') {
                    return Repair::Hopeless;
                }
                push_text(&mut mended, &text[at + 1..end]);
                at = end + 1;
                if is_alone {
                    break;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if is_alone => return Repair::Hopeless,
            b'}' | b']' => {
                depth -= 1;
                let last = mended
                    .iter()
                    .rposition(|byte: &u8| !byte.is_ascii_whitespace());
                if let Some(last) = last.filter(|last| mended[*last] == b',') {
                    mended.remove(last);
                }
            }
            _ if byte.is_ascii_alphabetic() => {
                let rest = &text[at..];
                let Some(end) = rest.iter().position(|byte| !byte.is_ascii_alphabetic()) else {
                    return Repair::Beyond;
                };
                let is_any = |words: &[&str]| {
                    words
                        .iter()
                        .any(|word| rest[..end].eq_ignore_ascii_case(word.as_bytes()))
                };
                // The letter of an exponent comes after a digit.
                let is_exponent = mended.last().is_some_and(u8::is_ascii_digit) && is_any(&["e"]);
                if is_any(&["nan", "inf", "infinity"]) {
                    let sign = usize::from(mended.ends_with(b"-"));
                    mended.truncate(mended.len() - sign);
                    mended.extend(b"null");
                } else if is_exponent || is_any(&["true", "false", "null"]) {
                    mended.extend(&rest[..end]);
                } else {
                    return Repair::Hopeless;
                }
                at += end;
                if is_alone {
                    break;
                }
                continue;
            }
            _ => {}
        }
        mended.push(byte);
        at += 1;
        if depth == 0 && byte != b'-' {
            break;
        }
    }
    Repair::Mended {
        length: at,
        text: mended,
    }
}

/// Returns the position of the quote that ends a text.
fn end_of_text(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    })
}

/// Adds a text. In one with an escape that JSON does not have, no backslash is an escape, except before a quote.
fn push_text(to: &mut Vec<u8>, text: &[u8]) {
    let is_escaped = has_valid_escapes(text);
    to.push(b'"');
    let text = String::from_utf8_lossy(text);
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' if is_escaped => {
                to.push(byte);
                to.extend(rest.next());
            }
            b'\\' if rest.peek() == Some(&b'"') => {
                to.push(byte);
                to.extend(rest.next());
            }
            b'\\' => to.extend(b"\\\\"),
            ..b' ' => to.extend(format!("\\u{byte:04x}").bytes()),
            _ => to.push(byte),
        }
    }
    to.push(b'"');
}

fn has_valid_escapes(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let is_valid = match rest.get(at + 1) {
            Some(b'u') => rest
                .get(at + 2..at + 6)
                .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
            Some(escape) => br#""\/bfnrt"#.contains(escape),
            None => false,
        };
        if !is_valid {
            return false;
        }
        rest = &rest[at + 2..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(text: &[u8]) -> (usize, String) {
        match repair(text) {
            Repair::Mended { length, text } => (length, String::from_utf8(text).expect("UTF-8")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn mistakes_that_mean_one_thing_are_mended() {
        for (text, expected) in [
            (
                r#"{"a": NaN, "b": [-Infinity, inf, -1e5], "c": true}"#,
                r#"{"a": null, "b": [null, null, -1e5], "c": true}"#,
            ),
            ("[1, {\"a\": 2,\n}, ]", "[1, {\"a\": 2\n} ]"),
            (
                r#"["torch\cuda\next\u12"]"#,
                r#"["torch\\cuda\\next\\u12"]"#,
            ),
            (
                r#"["a\n\u00e9\"]", "\q\"]"]"#,
                r#"["a\n\u00e9\"]", "\\q\"]"]"#,
            ),
            ("[\"run\u{1}\tstep\"]", r#"["run\u0001\u0009step"]"#),
            (r#""a\q""#, r#""a\\q""#),
            ("-Infinity", "null"),
        ] {
            let found = mended(format!("{text}, nan").as_bytes());
            assert_eq!(found, (text.len(), expected.to_owned()));
        }
        assert_eq!(mended(b"[\"a\xff\"]").1, "[\"a\u{fffd}\"]");
    }

    #[test]
    fn what_does_not_end_is_told_from_what_is_not_certain() {
        for text in ["", "{", r#"["a"#, r#"["a\"]"#, "[nan"] {
            assert_eq!(repair(text.as_bytes()), Repair::Beyond, "{text}");
        }
        for text in ["]", "[nul]", r#"["a"b", "c"#, "[\"a\n\"]"] {
            assert_eq!(repair(text.as_bytes()), Repair::Hopeless, "{text}");
        }
    }
}
