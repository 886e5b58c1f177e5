//! A comparison as Markdown, for comments on pull requests and summaries of jobs.

use super::text::{headline, remarks, table};
use crate::budget::Excess;
use crate::compare::{Comparison, Verdict};

/// The first line: invisible, so that a script finds the comment that it wrote before.
const MARKER: &str = "<!-- profiler-diff -->";

pub(super) fn render(comparison: &Comparison, all: bool, excess: &Excess) -> Vec<String> {
    let mut lines = vec![
        MARKER.to_owned(),
        format!(
            "### {} {}",
            sign(comparison, excess),
            escaped(&headline(comparison))
        ),
        String::new(),
    ];
    let table = table(comparison, all);
    if let Some((head, rows)) = table.split_first().filter(|(_, rows)| !rows.is_empty()) {
        let columns = head.len();
        let align = (0..columns).map(|column| match column {
            0 | 1 => "---",
            last if last + 1 == columns => "---",
            _ => "---:",
        });
        lines.push(format!("| {} |", head.join(" | ")));
        lines.push(format!("|{}|", align.collect::<Vec<_>>().join("|")));
        for row in rows {
            let (name, rest) = row
                .split_first()
                .map_or(("", row.as_slice()), |(name, rest)| (name.as_str(), rest));
            let rest: Vec<String> = rest.iter().map(|cell| escaped(cell)).collect();
            lines.push(format!("| {} | {} |", code(name), rest.join(" | ")));
        }
        lines.push(String::new());
    }
    let remarks = remarks(comparison)
        .into_iter()
        .chain(excess.over.iter().chain(&excess.missing).cloned());
    lines.extend(remarks.map(|remark| format!("- {}", escaped(&remark))));
    lines
}

fn sign(comparison: &Comparison, excess: &Excess) -> &'static str {
    if comparison.has(Verdict::Slower) || !excess.over.is_empty() {
        "❌"
    } else if comparison.has_verdicts() {
        "✅"
    } else {
        "ℹ️"
    }
}

/// Formats a name as code in a table: a vertical bar ends a cell even there, and so does a line break.
fn code(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|char| match char {
            '|' => '¦',
            '`' => '\'',
            char if char.is_control() => '�',
            char => char,
        })
        .collect();
    format!("`{name}`")
}

/// Escapes the characters that Markdown and HTML interpret.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '_' | '[' | ']' | '\\' | '@' | '#' => {
                escaped.push('\\');
                escaped.push(char);
            }
            char if char.is_control() => escaped.push('�'),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_table() {
        assert_eq!(code("a|b`c\nd"), "`a¦b'c�d`");
        assert_eq!(escaped("<b> *x* | y"), "&lt;b> \\*x\\* \\| y");
    }
}
