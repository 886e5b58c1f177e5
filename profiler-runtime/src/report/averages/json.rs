//! Averages as JSON.

use super::KeyAverages;
use super::callers::{CallEdge, CallEdges, EdgeTimes};
use super::fields::{counts, memory, times};
use super::row::AverageRow;
use crate::report::text::json::{array, lines, object, string};
use crate::report::text::{Field, nanoseconds};

pub(super) fn render(averages: &KeyAverages) -> String {
    let total = |key, ns: Option<f64>| Field::optional(key, ns.map(nanoseconds));
    let notes = array(averages.notes.iter().map(|note| string(note)));
    object([
        total("self_cpu_time_total_ns", averages.self_cpu_time_total_ns),
        total("self_cuda_time_total_ns", averages.self_cuda_time_total_ns),
        Field::raw("notes", notes),
        Field::raw("rows", lines(averages.rows.iter().map(row))),
    ]) + "\n"
}

fn row(row: &AverageRow) -> String {
    let stack = row.stack.as_ref();
    let stack = stack.map(|stack| array(stack.iter().map(|frame| string(frame))));
    // The text form of shapes is valid JSON.
    let shapes = row.input_shapes.is_some().then(|| row.shapes_text());
    let mut fields = vec![
        Field::text("name", &row.name),
        Field::text("location", &row.location),
        Field::optional("input_shapes", shapes),
        Field::optional("stack", stack),
    ];
    fields.extend(counts(row));
    fields.extend([
        Field::optional("cpu", row.cpu.as_ref().map(|cpu| object(times(cpu)))),
        Field::optional("cuda", row.cuda.as_ref().map(|cuda| object(times(cuda)))),
        Field::optional(
            "memory",
            row.memory.as_ref().map(|used| object(memory(used))),
        ),
    ]);
    object(fields)
}

pub(super) fn edges(edges: &CallEdges) -> String {
    lines(edges.edges.iter().map(edge)) + "\n"
}

fn edge(edge: &CallEdge) -> String {
    let times = |times: EdgeTimes| {
        object([
            Field::nanoseconds("total_ns", times.total_ns),
            Field::nanoseconds("self_ns", times.self_ns),
        ])
    };
    object([
        Field::optional_text("caller", edge.caller.as_deref()),
        Field::text("callee", &edge.callee),
        Field::raw("calls", edge.calls),
        Field::raw("primitive_calls", edge.primitive_calls),
        Field::optional("cpu", edge.cpu.map(times)),
        Field::optional("cuda", edge.cuda.map(times)),
    ])
}
