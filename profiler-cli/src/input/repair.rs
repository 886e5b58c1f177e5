//! Values that are no valid JSON, and mean only one thing all the same.
//!
//! Tools write texts without escaping them (paths of Windows, control characters, other encodings), numbers that JSON does not have
//! (`NaN`, `inf`), and commas before a closing bracket.

/// A value whose mistakes were mended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repaired {
    /// How many bytes of the original it takes.
    pub(super) length: usize,
    pub(super) text: Vec<u8>,
}

/// Mends the value that a text begins with. Returns `None` if it does not end in the text.
pub(super) fn repair(text: &[u8]) -> Option<Repaired> {
    let mut mended = Vec::with_capacity(text.len().min(1 << 12));
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        let byte = *text.get(at)?;
        let is_alone = depth == 0;
        match byte {
            b'"' => {
                let end = at + 1 + end_of_text(&text[at + 1..])?;
                push_text(&mut mended, &text[at + 1..end]);
                at = end + 1;
                if is_alone {
                    break;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                let last = mended
                    .iter()
                    .rposition(|byte: &u8| !byte.is_ascii_whitespace());
                if let Some(last) = last.filter(|last| mended[*last] == b',') {
                    mended.remove(last);
                }
            }
            _ if byte.is_ascii_alphabetic() => {
                let rest = &text[at..];
                let end = rest.iter().position(|byte| !byte.is_ascii_alphabetic())?;
                let is_no_number = ["nan", "inf", "infinity"]
                    .iter()
                    .any(|word| rest[..end].eq_ignore_ascii_case(word.as_bytes()));
                // The letter of an exponent comes after a digit.
                let is_word = !mended.last().is_some_and(u8::is_ascii_digit);
                if is_no_number && is_word {
                    mended.truncate(mended.strip_suffix(b"-").map_or(mended.len(), <[u8]>::len));
                    mended.extend(b"null");
                } else {
                    mended.extend(&rest[..end]);
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
    Some(Repaired {
        length: at,
        text: mended,
    })
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

    #[test]
    fn mistakes_that_mean_one_thing_are_mended() {
        for (text, mended) in [
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
            ("[\"run\u{1}\nstep\"]", r#"["run\u0001\u000astep"]"#),
        ] {
            let repaired = repair(format!("{text}, nan").as_bytes()).expect("it ends");
            assert_eq!(repaired.length, text.len(), "{text}");
            assert_eq!(String::from_utf8_lossy(&repaired.text), mended, "{text}");
        }
        for (value, mended) in [(r#""a\q""#, r#""a\\q""#), ("-Infinity", "null")] {
            let repaired = repair(format!("{value}, 1]").as_bytes()).expect("it ends");
            assert_eq!(
                (repaired.length, &*repaired.text),
                (value.len(), mended.as_bytes())
            );
        }
        let repaired = repair(b"[\"a\xff\"]").expect("it ends");
        assert_eq!(repaired.text, "[\"a\u{fffd}\"]".as_bytes());
    }

    #[test]
    fn what_does_not_end_is_left_alone() {
        for text in ["", "{", r#"["a"#, r#"["a\"]"#, "]", "[nan"] {
            assert_eq!(repair(text.as_bytes()), None, "{text}");
        }
    }
}
