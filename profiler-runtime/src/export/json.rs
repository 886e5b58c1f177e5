//! The summary as JSON (RFC 8259).

use std::fmt::Write;

use super::csv::numbers;
use crate::summary::{Row, Summary};

pub(crate) fn render(summary: &Summary) -> String {
    let rows: Vec<String> = summary.rows.iter().map(row).collect();
    let dropped: Vec<String> = summary
        .dropped
        .iter()
        .map(|(reason, entries)| format!("{}:{entries}", string(reason.key())))
        .collect();
    let notices: Vec<String> = summary
        .notices
        .iter()
        .map(|notice| string(notice))
        .collect();
    let nothing = summary
        .nothing_measured
        .as_deref()
        .map_or("null".to_owned(), string);
    format!(
        "{{\"wall_ns\":{:.1},\"percentile_error\":{},\"delivered\":{},\"dropped\":{{{}}},\
         \"unsaved\":{},\"notices\":[{}],\"nothing_measured\":{nothing},\"rows\":[{}]}}\n",
        summary.wall_ns,
        summary.percentile_error,
        summary.delivered,
        dropped.join(","),
        summary.unsaved,
        notices.join(","),
        rows.join(",\n"),
    )
}

fn row(row: &Row) -> String {
    let texts = [
        ("name", &row.name),
        ("tag", &row.tag),
        ("location", &row.location),
    ];
    let mut fields: Vec<String> = texts
        .iter()
        .map(|(key, text)| format!("\"{key}\":{}", string(text)))
        .collect();
    fields.extend(
        numbers(row)
            .into_iter()
            .map(|(key, value)| format!("\"{key}\":{value}")),
    );
    format!("{{{}}}", fields.join(","))
}

/// A string with its quotes.
fn string(text: &str) -> String {
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
}
