//! Averages as CSV.

use super::KeyAverages;
use super::callers::{CallEdge, CallEdges, EdgeTimes};
use super::fields::{counts, memory, times};
use super::row::AverageRow;
use crate::report::text::{Field, csv, nanoseconds};

pub(super) fn render(averages: &KeyAverages) -> String {
    let header = csv::header(&columns(&AverageRow::default()));
    let lines = averages.rows.iter().map(|row| csv::line(&columns(row)));
    std::iter::once(header).chain(lines).collect()
}

fn columns(row: &AverageRow) -> Vec<Field> {
    let stack = row.stack.as_ref().map(|stack| stack.join(";"));
    let mut columns = vec![
        Field::text("name", &row.name),
        Field::text("location", &row.location),
        Field::text("input_shapes", &row.shapes_text()),
        Field::optional_text("stack", stack.as_deref()),
    ];
    columns.extend(counts(row));
    columns.extend(part("cpu", row.cpu.as_ref(), times));
    columns.extend(part("cuda", row.cuda.as_ref(), times));
    columns.extend(part("memory", row.memory.as_ref(), memory));
    columns
}

/// Returns the fields of a part of a row; without their values if the row does not have the part.
fn part<T: Default>(
    prefix: &'static str,
    part: Option<&T>,
    fields: fn(&T) -> Vec<Field>,
) -> impl Iterator<Item = Field> {
    let is_missing = part.is_none();
    let fields = part.map_or_else(|| fields(&T::default()), fields);
    fields.into_iter().map(move |field| {
        let field = field.prefixed(prefix);
        if is_missing {
            field.without_value()
        } else {
            field
        }
    })
}

pub(super) fn edges(edges: &CallEdges) -> String {
    let header = csv::header(&edge_columns(&CallEdge::default()));
    let lines = edges
        .edges
        .iter()
        .map(|edge| csv::line(&edge_columns(edge)));
    std::iter::once(header).chain(lines).collect()
}

fn edge_columns(edge: &CallEdge) -> Vec<Field> {
    let time = |key, times: Option<EdgeTimes>, time: fn(EdgeTimes) -> f64| {
        Field::optional(key, times.map(time).map(nanoseconds))
    };
    vec![
        Field::optional_text("caller", edge.caller.as_deref()),
        Field::text("callee", &edge.callee),
        Field::raw("calls", edge.calls),
        Field::raw("primitive_calls", edge.primitive_calls),
        time("cpu_total_ns", edge.cpu, |times| times.total_ns),
        time("cpu_self_ns", edge.cpu, |times| times.self_ns),
        time("cuda_total_ns", edge.cuda, |times| times.total_ns),
        time("cuda_self_ns", edge.cuda, |times| times.self_ns),
    ]
}
