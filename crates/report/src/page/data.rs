//! The numbers that the script shows, as JSON.

use std::collections::HashMap;

use super::bars::bars;
use super::baseline;
use super::numbers::{number, time};
use super::packed::pack;
use super::table::by_self_time;
use super::{Page, Window};
use super::{tree, work};
use crate::call_tree::CallTree;
use crate::callers::{CallEdge, EdgeTimes};
use crate::gpu_use::GpuUse;
use crate::history::HistoryPoint;
use crate::options::TableOptions;
use crate::row::Row;
use crate::summary::Summary;
use crate::text::Field;
use crate::text::json::{array, lines, object, string};
use crate::timeline::Timeline;
use crate::times::Times;
use crate::verdict::Verdict;

/// How many rows the page holds.
const MAX_ROWS: usize = 5_000;
/// How many rows the text for the clipboard has.
const TEXT_ROWS: usize = 100;

/// Writes the data as a script element of a type that is not executed.
pub(super) fn push(html: &mut String, page: &Page<'_>, window: &Window) {
    html.push_str("<script id=data type=application/octet-stream>");
    html.push_str(&pack(&json(page, window)));
    html.push_str("</script>\n");
}

fn json(page: &Page<'_>, window: &Window) -> String {
    let summary = page.summary.map(summary_json);
    let comparison = page
        .summary
        .zip(page.baseline)
        .map(|(summary, baseline)| comparison_json(summary, baseline));
    object([
        Field::raw("version", 1),
        Field::optional("summary", summary),
        Field::optional("comparison", comparison),
        Field::optional("work", work::json(&window.kernels)),
        Field::optional("tree", call_tree(page).as_ref().and_then(tree::json)),
        Field::optional("time_line", window.time_line.as_deref()),
    ])
}

/// Returns the call tree of the window; without a window, that of the running statistics.
fn call_tree(page: &Page<'_>) -> Option<CallTree> {
    let of_window = page.timeline.map(Timeline::call_tree_with_work);
    of_window.or_else(|| Some(page.summary?.call_tree()))
}

fn summary_json(summary: &Summary) -> String {
    let rows = by_self_time(summary);
    let shown = &rows[..rows.len().min(MAX_ROWS)];
    let text = summary.table(
        TableOptions::new()
            .row_limit(Some(TEXT_ROWS))
            .note_limit(None)
            .width(usize::MAX),
    );
    object([
        Field::raw("rows", lines(shown.iter().map(|row| row_json(row)))),
        Field::raw("omitted_rows", rows.len() - shown.len()),
        Field::optional(
            "edges",
            summary
                .edges()
                .as_deref()
                .map(|edges| edges_json(edges, shown)),
        ),
        Field::raw("wall_ns", number(summary.wall_ns)),
        Field::raw("percentile_error", summary.percentile_error),
        Field::text("text", &text),
    ])
}

fn row_json(row: &Row) -> String {
    object([
        Field::text("name", &row.name),
        Field::text("location", &row.location),
        Field::raw("calls", row.calls),
        Field::raw("primitive_calls", row.primitive_calls),
        Field::raw("futures", row.futures),
        Field::raw("panicked", row.panicked),
        Field::raw("dropped_futures", row.dropped_futures),
        Field::raw("open", row.open),
        Field::raw("out_of_order", row.out_of_order),
        Field::raw("without_cuda", row.without_cuda),
        Field::raw("too_short", row.too_short),
        Field::raw(
            "streams",
            array(row.streams.iter().map(|stream| string(stream))),
        ),
        Field::optional("cpu", row.cpu.map(|times| times_json(&times))),
        Field::optional("cuda", row.cuda.map(|times| times_json(&times))),
        Field::optional("gpu", row.gpu.map(gpu_json)),
        Field::optional("cpu_histogram", row.cpu_histogram.as_ref().and_then(bars)),
        Field::optional("cuda_histogram", row.cuda_histogram.as_ref().and_then(bars)),
        Field::raw("history", array(row.history.iter().map(point_json))),
        Field::optional(
            "launch_bound",
            row.launch_bound.map(|share| format!("{share:.3}")),
        ),
        Field::optional_text("verdict", row.verdict().map(Verdict::as_str)),
    ])
}

/// Returns the values in the order in which the script names them.
fn times_json(times: &Times) -> String {
    let single = |ns| times.of_single(ns).map_or_else(|| "null".to_owned(), time);
    array([
        times.calls.to_string(),
        time(times.total_ns),
        format!("{:.2}", times.total_percent),
        time(times.self_ns),
        format!("{:.2}", times.self_percent),
        single(times.mean_ns),
        single(times.std_ns),
        single(times.min_ns),
        single(times.max_ns),
        single(times.p50_ns),
        single(times.p95_ns),
        single(times.p99_ns),
    ])
}

/// Returns how long the GPUs were busy with the work of a row, and how long they waited for it.
fn gpu_json(gpu: GpuUse) -> String {
    array([gpu.busy_ns, gpu.idle_caused_ns].map(time))
}

/// Returns the start and the length of a span, the calls that ended in it, and their self times on the CPU and on the GPU.
fn point_json(point: &HistoryPoint) -> String {
    array([
        point.start_ns.to_string(),
        point.duration_ns.to_string(),
        point.calls.to_string(),
        number(point.cpu_self_ns),
        number(point.cuda_self_ns),
    ])
}

/// Returns the call graph: rows by their place, other names as they are, `null` for calls without a caller.
fn edges_json(edges: &[CallEdge], rows: &[&Row]) -> String {
    let places: HashMap<&str, usize> = rows
        .iter()
        .enumerate()
        .map(|(place, row)| (row.name.as_str(), place))
        .collect();
    let place = |name: Option<&str>| match name {
        None => "null".to_owned(),
        Some(name) => places
            .get(name)
            .map_or_else(|| string(name), ToString::to_string),
    };
    let times = |times: Option<EdgeTimes>| {
        times.map_or("null".to_owned(), |times| {
            array([times.total_ns, times.self_ns].map(number))
        })
    };
    lines(edges.iter().map(|edge| {
        array([
            place(edge.caller.as_deref()),
            place(Some(&edge.callee)),
            edge.calls.to_string(),
            times(edge.cpu),
            times(edge.cuda),
        ])
    }))
}

fn comparison_json(summary: &Summary, base: &Summary) -> String {
    let optional = |value: Option<String>| value.unwrap_or_else(|| "null".to_owned());
    let pairs = baseline::pairs(summary, base);
    lines(pairs.iter().map(|pair| {
        let calls = |row: Option<&Row>| optional(row.map(|row| row.calls.to_string()));
        let mean = |ns: Option<f64>| optional(ns.map(number));
        array([
            string(pair.name),
            calls(pair.base),
            calls(pair.new),
            mean(baseline::cpu(pair.base)),
            mean(baseline::cpu(pair.new)),
            mean(baseline::cuda(pair.base)),
            mean(baseline::cuda(pair.new)),
            optional(baseline::self_change(pair, |row| row.cpu).map(time)),
            optional(baseline::self_change(pair, |row| row.cuda).map(time)),
        ])
    }))
}
