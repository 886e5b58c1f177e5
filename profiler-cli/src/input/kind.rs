//! Finds the kind of a file by its first bytes and keys.

use std::fmt;

/// The kind of a file. Its name does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An object with `rows`.
    Summary,
    /// An object with `traceEvents`, or a list of events.
    Trace,
    /// An object that has neither key at its beginning. It may be a trace with large values before its events.
    Object,
    /// What `profiler convert` writes for another program.
    Converted(Converted),
    Unknown,
}

/// The files that are written for other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Converted {
    /// A dictionary in Python's marshal format.
    Pstats,
    Pprof,
    Perfetto,
    Otlp,
    Html,
}

impl Converted {
    /// Finds files that are no JSON, which begin with what no text has.
    fn of_binary(bytes: &[u8]) -> Option<Self> {
        match bytes {
            // Python marks values that others refer to in the highest bit: 0xfb is `{`, and 0xa8 is `(`.
            [b'{' | 0xfb, b'(' | b')' | b'0' | 0xa8 | 0xa9, ..] => Some(Self::Pstats),
            // The field 1 of the whole: here a type of values, whose own field 1 is a number.
            [b'\n', 4..=12, 8, ..] => Some(Self::Pprof),
            [b'\n', packet @ ..] => {
                let packet = &packet[..packet.len().min(16)];
                packet
                    .iter()
                    .any(|byte| *byte < b'\t')
                    .then_some(Self::Perfetto)
            }
            [b'<', ..] => Some(Self::Html),
            _ => None,
        }
    }
}

/// Says what the file is, and what shows it.
impl fmt::Display for Converted {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Pstats => "a profile for Python: print it with `python3 -m pstats FILE`",
            Self::Pprof => "a profile for pprof: print it with `go tool pprof -top FILE`",
            Self::Perfetto => "a trace for Perfetto: open it at https://ui.perfetto.dev",
            Self::Otlp => "a file for a collector of OpenTelemetry: send it there",
            Self::Html => "a page: open it in a browser",
        })
    }
}

impl Kind {
    /// Looks at the beginning of a file; `None` if it is empty.
    pub(super) fn of(beginning: &[u8]) -> Option<Self> {
        if let Some(converted) = Converted::of_binary(beginning) {
            return Some(Self::Converted(converted));
        }
        let text = beginning.trim_ascii_start();
        match text.first()? {
            b'[' => Some(Self::Trace),
            b'{' => {
                let key = keys(text).find_map(|key| match key {
                    b"traceEvents" => Some(Self::Trace),
                    b"rows" => Some(Self::Summary),
                    b"resourceSpans" => Some(Self::Converted(Converted::Otlp)),
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
            (
                r#"{"resourceSpans": []}"#,
                Some(Kind::Converted(Converted::Otlp)),
            ),
            ("{(\u{3}\0", Some(Kind::Converted(Converted::Pstats))),
            (
                "\n\u{4}\u{8}\u{1}\u{10}",
                Some(Kind::Converted(Converted::Pprof)),
            ),
            (
                "\n%r\u{3}\"\u{8}",
                Some(Kind::Converted(Converted::Perfetto)),
            ),
            ("<!doctype html>", Some(Kind::Converted(Converted::Html))),
            ("\n{}", Some(Kind::Object)),
            ("\n ", None),
            ("", None),
        ] {
            assert_eq!(Kind::of(text.as_bytes()), kind, "{text}");
        }
    }
}
