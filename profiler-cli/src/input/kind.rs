//! Finds the kind of a file by its first keys.

/// The kind of a file. Its name does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An object with `rows`.
    Summary,
    /// An object with `traceEvents`, or a list of events.
    Trace,
    /// An object that has neither key at its beginning. It may be a trace with large values before its events.
    Object,
    Unknown,
}

impl Kind {
    /// Looks at the beginning of a file; `None` if it is empty.
    pub(super) fn of(beginning: &[u8]) -> Option<Self> {
        let text = beginning.trim_ascii_start();
        match text.first()? {
            b'[' => Some(Self::Trace),
            b'{' => {
                let key = keys(text).find_map(|key| match key {
                    b"traceEvents" => Some(Self::Trace),
                    b"rows" => Some(Self::Summary),
                    _ => None,
                });
                Some(key.unwrap_or(Self::Object))
            }
            _ => Some(Self::Unknown),
        }
    }
}

/// Returns the keys of the outermost object, with their escapes.
fn keys(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    let mut depth = 0_u32;
    let mut is_key = false;
    std::iter::from_fn(move || {
        loop {
            let byte = *text.get(at)?;
            at += 1;
            match byte {
                b'{' | b'[' => {
                    depth += 1;
                    is_key = depth == 1;
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b',' => is_key = depth == 1,
                b':' => is_key = false,
                b'"' => {
                    let start = at;
                    while *text.get(at)? != b'"' {
                        at += if text[at] == b'\\' { 2 } else { 1 };
                    }
                    let end = at;
                    at += 1;
                    if is_key {
                        return Some(&text[start..end]);
                    }
                }
                _ => {}
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keys_tell_what_a_file_is() {
        for (text, kind) in [
            (r#"{"wall_ns": 3, "rows": []}"#, Some(Kind::Summary)),
            (
                r#" {"a": {"rows": 1}, "b\"": ["rows"], "traceEvents": []}"#,
                Some(Kind::Trace),
            ),
            (r#"{"name": "rows", "traceEvents": ["#, Some(Kind::Trace)),
            (r#"[{"ph": "X"}]"#, Some(Kind::Trace)),
            (r#"{"schemaVersion": 1"#, Some(Kind::Object)),
            ("{\"a\\", Some(Kind::Object)),
            ("Name Calls", Some(Kind::Unknown)),
            ("\n ", None),
            ("", None),
        ] {
            assert_eq!(Kind::of(text.as_bytes()), kind, "{text}");
        }
    }
}
