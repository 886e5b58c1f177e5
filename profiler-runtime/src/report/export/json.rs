//! The summary as JSON (RFC 8259).

use std::fmt::Write;

use super::csv::{cuda_numbers, numbers};
use crate::cuda::CudaHealth;
use crate::report::summary::{CudaTimes, Row, Summary};

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
         \"unsaved\":{},\"unmeasured\":{},\"cuda\":{},\"own_cost\":{{\"measured_threads\":{:.9},\"background\":{:.9}}},\"notices\":[{}],\"nothing_measured\":{nothing},\"rows\":[{}]}}\n",
        summary.wall_ns,
        summary.percentile_error,
        summary.delivered,
        dropped.join(","),
        summary.unsaved,
        summary.unmeasured,
        health(&summary.cuda),
        summary.own_cost.measured_threads,
        summary.own_cost.background,
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
    fields.push(format!("\"source\":{}", string(row.source.as_str())));
    let cuda = row.cuda.as_ref().map_or("null".to_owned(), cuda);
    fields.push(format!("\"cuda\":{cuda}"));
    format!("{{{}}}", fields.join(","))
}

fn cuda(times: &CudaTimes) -> String {
    let mut fields: Vec<String> = cuda_numbers(times)
        .into_iter()
        .map(|(key, value)| format!("\"{key}\":{value}"))
        .collect();
    let streams: Vec<String> = times.streams.iter().map(|stream| string(stream)).collect();
    fields.push(format!("\"verdict\":{}", string(times.verdict().as_str())));
    fields.push(format!("\"streams\":[{}]", streams.join(",")));
    format!("{{{}}}", fields.join(","))
}

fn health(health: &CudaHealth) -> String {
    let lost: Vec<String> = health
        .lost
        .iter()
        .map(|(reason, calls)| format!("{}:{calls}", string(reason.key())))
        .collect();
    let uncertainty = health
        .uncertainty_ns
        .map_or("null".to_owned(), |ns| format!("{ns:.1}"));
    format!(
        "{{\"status\":{},\"ready\":{},\"in_flight\":{},\"pairs\":{},\"high_water\":{},\"lost\":{{{}}},\
         \"uncertainty_ns\":{uncertainty},\"rejected_times\":{},\
         \"records\":{{\"timed\":{},\"long\":{},\"longest_ns\":{:.1}}}}}",
        string(&health.status),
        health.ready,
        health.in_flight,
        health.pairs,
        health.high_water,
        lost.join(","),
        health.rejected_times,
        health.records.timed,
        health.records.long,
        health.records.longest_ns,
    )
}

/// A string with its quotes.
pub(crate) fn string(text: &str) -> String {
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
