//! The values of a row with their keys, as JSON and CSV have them.

use super::energy::Energy;
use super::gpu_use::GpuUse;
use super::histogram::Histogram;
use super::history;
use super::row::{GpuRanges, MemoryStats, Row};
use super::text::json::{array, object, string};
use super::text::{Field, csv};
use super::times::Times;
use super::verdict::Verdict;

/// Returns a row as a JSON object. The keys are the names of the fields.
pub(super) fn to_json(row: &Row) -> String {
    let stack = row.stack.as_ref();
    let stack = stack.map(|stack| array(stack.iter().map(|frame| string(frame))));
    // The text form of shapes is valid JSON.
    let shapes = row.input_shapes.is_some().then(|| row.shapes_text());
    let ranges = row.gpu_ranges.map(|ranges| object(ranges.fields()));
    let mut fields = counts(row);
    fields.extend([
        Field::optional("input_shapes", shapes),
        Field::optional("stack", stack),
        Field::raw("streams", array(row.streams.iter().map(|key| string(key)))),
        Field::optional("cpu", row.cpu.map(times)),
        Field::optional("cuda", row.cuda.map(times)),
        Field::optional("gpu_ranges", ranges),
        Field::optional("gpu", row.gpu.map(|gpu| object(gpu.fields()))),
        Field::optional("memory", row.memory.map(|used| object(memory(&used)))),
        Field::optional("energy", row.energy.map(|energy| object(energy.fields()))),
        Field::optional("cpu_histogram", histogram(row.cpu_histogram.as_ref())),
        Field::optional("cuda_histogram", histogram(row.cuda_histogram.as_ref())),
        Field::raw("history", history::json(&row.history)),
    ]);
    object(fields)
}

/// Readers of all versions give times that are left out their default; they take no `null` for a number.
fn times(times: Times) -> String {
    object(times.fields().into_iter().filter(Field::has_value))
}

fn histogram(histogram: Option<&Histogram>) -> Option<String> {
    histogram.map(|histogram| object([Field::raw("buckets", histogram.json())]))
}

/// Returns rows as CSV with a header line. The keys are those of JSON; the parts of a row prefix theirs.
pub(super) fn to_csv(rows: &[Row]) -> String {
    let header = csv::header(&columns(&Row::default()));
    let lines = rows.iter().map(|row| csv::line(&columns(row)));
    std::iter::once(header).chain(lines).collect()
}

fn columns(row: &Row) -> Vec<Field> {
    let stack = row.stack.as_ref().map(|stack| stack.join(";"));
    let mut columns = counts(row);
    columns.extend([
        Field::text("input_shapes", &row.shapes_text()),
        Field::optional_text("stack", stack.as_deref()),
        Field::text("streams", &row.streams.join(";")),
    ]);
    columns.extend(part("cpu", row.cpu.as_ref(), Times::fields));
    columns.extend(part("cuda", row.cuda.as_ref(), Times::fields));
    let ranges = row.gpu_ranges.as_ref();
    columns.extend(part("gpu_ranges", ranges, GpuRanges::fields));
    columns.extend(part("gpu", row.gpu.as_ref(), GpuUse::fields));
    columns.extend(part("memory", row.memory.as_ref(), memory));
    columns.extend(part("energy", row.energy.as_ref(), Energy::fields));
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

/// Returns the values that are in JSON and CSV alike.
fn counts(row: &Row) -> Vec<Field> {
    let launch_bound = row.launch_bound.map(|share| format!("{share:.6}"));
    let thread_time = |ns: Option<f64>| ns.map(super::text::nanoseconds);
    let other_streams = row.other_streams_ns.map(super::text::nanoseconds);
    vec![
        Field::text("name", &row.name),
        Field::text("tag", &row.tag),
        Field::text("location", &row.location),
        Field::raw("calls", row.calls),
        Field::raw("primitive_calls", row.primitive_calls),
        Field::raw("futures", row.futures),
        Field::nanoseconds("polled_ns", row.polled_ns),
        Field::raw("reentered_spans", row.reentered_spans),
        Field::optional(
            "thread_time_total_ns",
            thread_time(row.thread_time_total_ns),
        ),
        Field::optional(
            "self_thread_time_total_ns",
            thread_time(row.self_thread_time_total_ns),
        ),
        Field::raw("panicked", row.panicked),
        Field::raw("dropped_futures", row.dropped_futures),
        Field::raw("open", row.open),
        Field::raw("out_of_order", row.out_of_order),
        Field::raw("too_short", row.too_short),
        Field::raw("dropped_entries", row.dropped_entries),
        Field::text("source", row.source.as_str()),
        Field::optional("launch_bound", launch_bound),
        Field::optional_text("work_verdict", row.work_verdict.map(Verdict::as_str)),
        Field::optional_text("verdict", row.verdict().map(Verdict::as_str)),
        Field::optional("other_streams_ns", other_streams),
        Field::raw("idle_stream", row.idle_stream),
        Field::raw("without_cuda", row.without_cuda),
        Field::raw("without_stream", row.without_stream),
    ]
}

fn memory(memory: &MemoryStats) -> Vec<Field> {
    vec![
        Field::raw("cpu_net", memory.cpu_net),
        Field::raw("self_cpu_net", memory.self_cpu_net),
        Field::raw("cpu_allocated", memory.cpu_allocated),
        Field::raw("self_cpu_allocated", memory.self_cpu_allocated),
        Field::raw("cpu_peak", memory.cpu_peak),
        Field::raw("cpu_in_use", memory.cpu_in_use),
        Field::optional("cuda_net", memory.cuda_net),
        Field::optional("self_cuda_net", memory.self_cuda_net),
        Field::optional("cuda_in_use", memory.cuda_in_use),
        Field::optional("cuda_reserved", memory.cuda_reserved),
    ]
}
