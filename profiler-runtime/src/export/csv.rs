//! The rows as CSV (RFC 4180).

use std::fmt::Write;

use crate::summary::{Row, Summary};

pub(crate) fn render(summary: &Summary) -> String {
    let mut csv = String::new();
    let header: Vec<&str> = numbers(&Row::default())
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    let _ = write!(csv, "name,tag,location,{}\r\n", header.join(","));
    for row in &summary.rows {
        let texts = [&row.name, &row.tag, &row.location].map(|text| quoted(text));
        let values: Vec<String> = numbers(row).into_iter().map(|(_, value)| value).collect();
        let _ = write!(csv, "{},{}\r\n", texts.join(","), values.join(","));
    }
    csv
}

/// All numbers of a row, with their keys: those of the fields of [`Row`].
pub(super) fn numbers(row: &Row) -> Vec<(&'static str, String)> {
    vec![
        ("calls", row.calls.to_string()),
        ("primitive_calls", row.primitive_calls.to_string()),
        ("total_ns", nanoseconds(row.total_ns)),
        ("self_ns", nanoseconds(row.self_ns)),
        ("mean_ns", nanoseconds(row.mean_ns)),
        ("std_ns", nanoseconds(row.std_ns)),
        ("min_ns", nanoseconds(row.min_ns)),
        ("max_ns", nanoseconds(row.max_ns)),
        ("p50_ns", nanoseconds(row.p50_ns)),
        ("p95_ns", nanoseconds(row.p95_ns)),
        ("p99_ns", nanoseconds(row.p99_ns)),
        ("wall_share", format!("{:.6}", row.wall_share)),
        ("futures", row.futures.to_string()),
        ("polled_ns", nanoseconds(row.polled_ns)),
        ("panicked", row.panicked.to_string()),
        ("dropped_futures", row.dropped_futures.to_string()),
        ("open", row.open.to_string()),
        ("dropped_entries", row.dropped_entries.to_string()),
        ("disordered", row.disordered.to_string()),
        ("too_short", row.too_short.to_string()),
    ]
}

/// A tenth of a nanosecond: means of short calls need it, and no clock gives more.
fn nanoseconds(value: f64) -> String {
    format!("{value:.1}")
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
