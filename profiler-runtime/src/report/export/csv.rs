//! The rows as CSV (RFC 4180).

use std::fmt::Write;

use crate::report::summary::{CudaTimes, Row, Summary};

pub(crate) fn render(summary: &Summary) -> String {
    let mut csv = String::new();
    let header: Vec<&str> = numbers(&Row::default())
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    let cuda: Vec<String> = cuda_numbers(&CudaTimes::default())
        .into_iter()
        .map(|(key, _)| format!("cuda_{key}"))
        .collect();
    let _ = write!(
        csv,
        "name,tag,location,{},source,{}\r\n",
        header.join(","),
        cuda.join(",")
    );
    for row in &summary.rows {
        let texts = [&row.name, &row.tag, &row.location].map(|text| quoted(text));
        let mut values: Vec<String> = numbers(row).into_iter().map(|(_, value)| value).collect();
        values.push(row.source.as_str().to_owned());
        match &row.cuda {
            Some(times) => values.extend(cuda_numbers(times).into_iter().map(|(_, value)| value)),
            None => values.extend(cuda.iter().map(|_| String::new())),
        }
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
        ("without_cuda", row.without_cuda.to_string()),
        ("without_stream", row.without_stream.to_string()),
    ]
}

/// All numbers of a row's GPU time, with their keys: those of the fields of [`CudaTimes`].
pub(super) fn cuda_numbers(times: &CudaTimes) -> Vec<(&'static str, String)> {
    vec![
        ("calls", times.calls.to_string()),
        ("total_ns", nanoseconds(times.total_ns)),
        ("self_ns", nanoseconds(times.self_ns)),
        ("mean_ns", nanoseconds(times.mean_ns)),
        ("std_ns", nanoseconds(times.std_ns)),
        ("min_ns", nanoseconds(times.min_ns)),
        ("max_ns", nanoseconds(times.max_ns)),
        ("p50_ns", nanoseconds(times.p50_ns)),
        ("p95_ns", nanoseconds(times.p95_ns)),
        ("p99_ns", nanoseconds(times.p99_ns)),
        ("launch_bound", format!("{:.6}", times.launch_bound)),
        ("elsewhere_ns", nanoseconds(times.elsewhere_ns)),
        ("saw_no_work", times.saw_no_work.to_string()),
    ]
}

/// A tenth of a nanosecond: means of short calls need it, and no clock gives more.
pub(crate) fn nanoseconds(value: f64) -> String {
    format!("{value:.1}")
}

/// What a spreadsheet takes for the beginning of a formula, in letters of full width too.
const FORMULA: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// A text as one field, whatever it holds.
///
/// One that a spreadsheet would take for a formula gets an apostrophe before it, and quotes around it. So does one that
/// has apostrophes before such a text: to take one off where a formula follows gives back each text. Numbers do not
/// come here.
pub(crate) fn quoted(text: &str) -> String {
    let is_formula = text.trim_start_matches('\'').starts_with(FORMULA);
    let apostrophe = if is_formula { "'" } else { "" };
    // Some spreadsheets take semicolons and tabs for separators too.
    if is_formula || text.contains([',', ';', '\t', '"', '\n', '\r']) {
        format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
