//! Averages as CSV (RFC 4180).

use std::fmt::Write;

use super::KeyAverages;
use super::callers::{CallEdges, EdgeTimes};
use super::row::{AverageMemory, AverageRow};
use super::times::AverageTimes;
use crate::report::export::csv::{nanoseconds, quoted};

/// A key with its value; the value is empty if there is none.
pub(super) type Field = (String, Option<String>);

pub(super) fn render(averages: &KeyAverages) -> String {
    let header = fields(&AverageRow::default());
    let mut csv = line(
        &["name", "location", "input_shapes", "stack"],
        &header,
        |field| field.0.clone(),
    );
    for row in &averages.rows {
        let stack = row.stack.as_ref().map(|stack| stack.join(";"));
        let texts = [
            &row.name,
            &row.location,
            &row.shapes_text(),
            &stack.unwrap_or_default(),
        ];
        csv += &line(&texts.map(|text| quoted(text)), &fields(row), |field| {
            field.1.clone().unwrap_or_default()
        });
    }
    csv
}

fn line(texts: &[impl AsRef<str>], fields: &[Field], value: impl Fn(&Field) -> String) -> String {
    let mut line = String::new();
    let texts = texts.iter().map(|text| text.as_ref().to_owned());
    for (place, cell) in texts.chain(fields.iter().map(value)).enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let _ = write!(line, "{comma}{cell}");
    }
    line + "\r\n"
}

fn fields(row: &AverageRow) -> Vec<Field> {
    let mut fields = counts(row);
    let parts = [
        ("cpu", times(row.cpu.as_ref())),
        ("cuda", times(row.cuda.as_ref())),
        ("memory", memory(row.memory.as_ref())),
    ];
    for (part, of_part) in parts {
        let named = |(key, value): Field| (format!("{part}_{key}"), value);
        fields.extend(of_part.into_iter().map(named));
    }
    fields
}

/// The counts of a row.
pub(super) fn counts(row: &AverageRow) -> Vec<Field> {
    let verdict = row.verdict().map(|verdict| verdict.as_str().to_owned());
    let launch_bound = row.launch_bound.map(|share| format!("{share:.6}"));
    let mut counts = vec![
        field("calls", &row.calls),
        field("primitive_calls", &row.primitive_calls),
        field("without_cuda", &row.without_cuda),
        field("futures", &row.futures),
        field("polled_ns", &nanoseconds(row.polled_ns)),
        field("panicked", &row.panicked),
        field("dropped_futures", &row.dropped_futures),
        field("too_short", &row.too_short),
    ];
    counts.push(("launch_bound".to_owned(), launch_bound));
    counts.push(("verdict".to_owned(), verdict));
    counts
}

fn field(key: &str, value: &dyn ToString) -> Field {
    (key.to_owned(), Some(value.to_string()))
}

/// The times of a row; the keys alone if it has none.
pub(super) fn times(times: Option<&AverageTimes>) -> Vec<Field> {
    let none = AverageTimes::default();
    let has_any = times.is_some();
    let times = times.unwrap_or(&none);
    let percent = |percent: f64| format!("{percent:.2}");
    let fields = [
        ("calls", times.calls.to_string()),
        ("total_ns", nanoseconds(times.total_ns)),
        ("total_percent", percent(times.total_percent)),
        ("self_ns", nanoseconds(times.self_ns)),
        ("self_percent", percent(times.self_percent)),
        ("mean_ns", nanoseconds(times.mean_ns)),
        ("std_ns", nanoseconds(times.std_ns)),
        ("min_ns", nanoseconds(times.min_ns)),
        ("max_ns", nanoseconds(times.max_ns)),
        ("p50_ns", nanoseconds(times.p50_ns)),
        ("p95_ns", nanoseconds(times.p95_ns)),
        ("p99_ns", nanoseconds(times.p99_ns)),
    ];
    fields
        .map(|(key, value)| (key.to_owned(), has_any.then_some(value)))
        .into()
}

/// The memory of a row; the keys alone if it is not known.
pub(super) fn memory(memory: Option<&AverageMemory>) -> Vec<Field> {
    let host = |of: fn(&AverageMemory) -> i128| memory.map(|memory| of(memory).to_string());
    let cuda = |of: fn(&AverageMemory) -> Option<i128>| Some(of(memory?)?.to_string());
    let fields = [
        ("cpu_net", host(|memory| memory.cpu_net.into())),
        ("self_cpu_net", host(|memory| memory.self_cpu_net.into())),
        ("cpu_allocated", host(|memory| memory.cpu_allocated.into())),
        (
            "self_cpu_allocated",
            host(|memory| memory.self_cpu_allocated.into()),
        ),
        ("cpu_peak", host(|memory| memory.cpu_peak.into())),
        ("cpu_in_use", host(|memory| memory.cpu_in_use.into())),
        ("cuda_net", cuda(|memory| memory.cuda_net.map(i128::from))),
        (
            "self_cuda_net",
            cuda(|memory| memory.self_cuda_net.map(i128::from)),
        ),
        (
            "cuda_in_use",
            cuda(|memory| memory.cuda_in_use.map(i128::from)),
        ),
        (
            "cuda_reserved",
            cuda(|memory| memory.cuda_reserved.map(i128::from)),
        ),
    ];
    fields.map(|(key, value)| (key.to_owned(), value)).into()
}

pub(super) fn edges(edges: &CallEdges) -> String {
    let mut csv = "caller,callee,calls,primitive_calls,cpu_total_ns,cpu_self_ns,cuda_total_ns,cuda_self_ns\r\n"
        .to_owned();
    let both = |times: Option<EdgeTimes>| {
        let of =
            |of: fn(&EdgeTimes) -> f64| times.as_ref().map(of).map(nanoseconds).unwrap_or_default();
        format!(
            "{},{}",
            of(|times| times.total_ns),
            of(|times| times.self_ns)
        )
    };
    for edge in &edges.edges {
        let _ = write!(
            csv,
            "{},{},{},{},{},{}\r\n",
            edge.caller.as_deref().map(quoted).unwrap_or_default(),
            quoted(&edge.callee),
            edge.calls,
            edge.primitive_calls,
            both(edge.cpu),
            both(edge.cuda),
        );
    }
    csv
}
