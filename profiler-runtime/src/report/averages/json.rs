//! Averages as JSON (RFC 8259).

use super::KeyAverages;
use super::callers::{CallEdge, CallEdges, EdgeTimes};
use super::csv::{Field, counts, memory, times};
use super::row::AverageRow;
use crate::report::export::csv::nanoseconds;
use crate::report::export::json::string;

pub(super) fn render(averages: &KeyAverages) -> String {
    let rows: Vec<String> = averages.rows.iter().map(row).collect();
    let notes: Vec<String> = averages.notes.iter().map(|note| string(note)).collect();
    let total = |ns: Option<f64>| ns.map_or_else(null, nanoseconds);
    format!(
        "{{\"self_cpu_time_total_ns\":{},\"self_cuda_time_total_ns\":{},\"notes\":[{}],\"rows\":[{}]}}\n",
        total(averages.self_cpu_time_total_ns),
        total(averages.self_cuda_time_total_ns),
        notes.join(","),
        rows.join(",\n"),
    )
}

fn null() -> String {
    "null".to_owned()
}

fn row(row: &AverageRow) -> String {
    let stack = row.stack.as_ref().map(|stack| {
        let frames: Vec<String> = stack.iter().map(|frame| string(frame)).collect();
        format!("[{}]", frames.join(","))
    });
    // The text form of shapes is valid JSON.
    let shapes = row.input_shapes.is_some().then(|| row.shapes_text());
    let mut fields = vec![
        format!("\"name\":{}", string(&row.name)),
        format!("\"location\":{}", string(&row.location)),
        format!("\"input_shapes\":{}", shapes.unwrap_or_else(null)),
        format!("\"stack\":{}", stack.unwrap_or_else(null)),
    ];
    let quote_verdict = |(key, value): Field| {
        let is_text = key == "verdict";
        (
            key,
            value.map(|value| if is_text { string(&value) } else { value }),
        )
    };
    fields.extend(members(counts(row).into_iter().map(quote_verdict)));
    for (key, part) in [
        ("cpu", row.cpu.is_some().then(|| times(row.cpu.as_ref()))),
        ("cuda", row.cuda.is_some().then(|| times(row.cuda.as_ref()))),
        (
            "memory",
            row.memory.is_some().then(|| memory(row.memory.as_ref())),
        ),
    ] {
        let object =
            part.map(|part| format!("{{{}}}", members(part).collect::<Vec<_>>().join(",")));
        fields.push(format!("\"{key}\":{}", object.unwrap_or_else(null)));
    }
    format!("{{{}}}", fields.join(","))
}

fn members(fields: impl IntoIterator<Item = Field>) -> impl Iterator<Item = String> {
    let member = |(key, value): Field| format!("\"{key}\":{}", value.unwrap_or_else(null));
    fields.into_iter().map(member)
}

pub(super) fn edges(edges: &CallEdges) -> String {
    let edges: Vec<String> = edges.edges.iter().map(edge).collect();
    format!("[{}]\n", edges.join(",\n"))
}

fn edge(edge: &CallEdge) -> String {
    let times = |times: Option<EdgeTimes>| {
        times.map_or_else(null, |times| {
            format!(
                "{{\"total_ns\":{},\"self_ns\":{}}}",
                nanoseconds(times.total_ns),
                nanoseconds(times.self_ns)
            )
        })
    };
    format!(
        "{{\"caller\":{},\"callee\":{},\"calls\":{},\"primitive_calls\":{},\"cpu\":{},\"cuda\":{}}}",
        edge.caller.as_deref().map_or_else(null, string),
        string(&edge.callee),
        edge.calls,
        edge.primitive_calls,
        times(edge.cpu),
        times(edge.cuda),
    )
}
