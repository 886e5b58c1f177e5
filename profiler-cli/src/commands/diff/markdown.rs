//! A comparison as Markdown, for comments on pull requests and summaries of jobs.

use profiler_host::diagnostics::printable;

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
    let excess = excess.over.iter().chain(&excess.missing);
    let remarks = remarks(comparison, code, escaped).into_iter();
    let remarks = remarks.chain(excess.map(|remark| escaped(remark)));
    lines.extend(remarks.map(|remark| format!("- {remark}")));
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

/// Formats a name as code, which is no link and mentions nobody. In a table, a vertical bar ends a cell even there, and so does
/// a line break.
fn code(name: &str) -> String {
    let name = printable(name).replace('|', "¦").replace('`', "'");
    format!("`{name}`")
}

/// Escapes the characters that Markdown and HTML interpret, and the addresses that GitHub makes links of.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in printable(text).chars() {
        match char {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '_' | '[' | ']' | '\\' | '@' | '#' | '`' => {
                escaped.push('\\');
                escaped.push(char);
            }
            char => escaped.push(char),
        }
    }
    escaped.replace("://", "\\://").replace("www.", "www\\.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_table() {
        assert_eq!(code("a|b`c\nd"), "`a¦b'c�d`");
        assert_eq!(escaped("<b> *x* | y"), "&lt;b> \\*x\\* \\| y");
        assert_eq!(
            escaped("`https://evil.example/ www.evil.example"),
            "\\`https\\://evil.example/ www\\.evil.example"
        );
    }
}
