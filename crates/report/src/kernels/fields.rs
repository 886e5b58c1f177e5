//! Kernels with their keys, as JSON and CSV have them.

use super::row::{KernelRow, KernelRowKind, KernelUse, MinMax};
use super::table::{copy_direction, memory_name};
use super::{ScopeKernels, Verdict};
use crate::gpu_work::MemoryKind;
use crate::text::json::{array, lines, object};
use crate::text::{Field, nanoseconds};

/// Returns a scope with its kernels as a JSON object.
pub(super) fn scope_json(scope: &ScopeKernels) -> String {
    let mut fields = scope_fields(scope);
    let rows = scope.rows.iter().map(|row| object(row_fields(row, true)));
    fields.push(Field::raw("rows", lines(rows)));
    object(fields)
}

/// Returns the columns of a kernel in CSV.
pub(super) fn columns(scope: &ScopeKernels, row: &KernelRow) -> Vec<Field> {
    let [name, values @ ..] = &scope_fields(scope)[..] else {
        return Vec::new();
    };
    let values = values.iter().cloned().map(|field| field.prefixed("scope"));
    let mut columns = vec![name.clone()];
    columns.extend(values);
    columns.extend(row_fields(row, false));
    columns
}

fn scope_fields(scope: &ScopeKernels) -> Vec<Field> {
    let per_call = scope.launches_per_call().map(|count| format!("{count:.3}"));
    vec![
        Field::optional_text("scope", scope.scope.as_deref()),
        Field::raw("calls", scope.calls),
        Field::optional("launches", scope.launches),
        Field::optional("launches_per_call", per_call),
        Field::nanoseconds("busy_ns", scope.busy_ns),
        Field::nanoseconds("copy_ns", scope.copy_ns),
        Field::optional("idle_ns", scope.idle_ns.map(nanoseconds)),
        Field::optional("launch_gap_ns", scope.launch_gap_ns.map(nanoseconds)),
        Field::optional_text("verdict", scope.verdict().map(Verdict::as_str)),
    ]
}

fn row_fields(row: &KernelRow, is_json: bool) -> Vec<Field> {
    let times = &row.times;
    let (kernel, from, to) = match row.kind {
        KernelRowKind::Kernel(kernel) => (Some(kernel), None, None),
        KernelRowKind::Copy(copy) => (None, Some(copy.from), Some(copy.to)),
        KernelRowKind::Fill(fill) => (None, None, Some(fill.memory)),
        KernelRowKind::Unknown => (None, None, None),
    };
    let kind = match row.kind {
        KernelRowKind::Kernel(_) => "kernel",
        KernelRowKind::Copy(_) => "memcpy",
        KernelRowKind::Fill(_) => "memset",
        KernelRowKind::Unknown => "unknown",
    };
    let memory = |kind: Option<MemoryKind>| kind.map(memory_name);
    let speed = row.gigabytes_per_second();
    let mut fields = vec![
        Field::text("kind", kind),
        Field::text("name", &row.name),
        Field::text("short_name", &row.short),
        Field::raw("calls", times.calls),
        Field::nanoseconds("total_ns", times.total_ns),
        Field::raw("percent", format!("{:.2}", times.total_percent)),
        Field::nanoseconds("mean_ns", times.mean_ns),
        Field::nanoseconds("min_ns", times.min_ns),
        Field::nanoseconds("p50_ns", times.p50_ns),
        Field::nanoseconds("p95_ns", times.p95_ns),
        Field::nanoseconds("max_ns", times.max_ns),
    ];
    fields.extend(extents("grid", kernel, is_json, |kernel| kernel.grid));
    fields.extend(extents("block", kernel, is_json, |kernel| kernel.block));
    fields.extend(range(
        ["registers_min", "registers_max"],
        kernel.map(|kernel| kernel.registers),
    ));
    fields.extend(range(
        ["shared_bytes_min", "shared_bytes_max"],
        kernel.map(|kernel| kernel.shared_bytes),
    ));
    fields.extend([
        Field::optional_text("direction", copy_direction(row.kind)),
        Field::optional_text("from", memory(from)),
        Field::optional_text("to", memory(to)),
        Field::optional("bytes", row.bytes()),
        Field::optional("gb_per_s", speed.map(|speed| format!("{speed:.3}"))),
    ]);
    fields
}

fn range(keys: [&'static str; 2], range: Option<MinMax<u32>>) -> [Field; 2] {
    let [min, max] = keys;
    [
        Field::optional(min, range.map(|range| range.min)),
        Field::optional(max, range.map(|range| range.max)),
    ]
}

/// Returns the smallest and the largest grid or block: as arrays in JSON, as `8x4x1` in CSV.
fn extents(
    prefix: &str,
    kernel: Option<KernelUse>,
    is_json: bool,
    of: impl Fn(KernelUse) -> MinMax<[u32; 3]>,
) -> [Field; 2] {
    let range = kernel.map(of);
    let field = |key, extent: Option<[u32; 3]>| {
        let numbers = extent.map(|extent| extent.map(|count| count.to_string()));
        let field = if is_json {
            Field::optional(key, numbers.map(array))
        } else {
            let text = numbers.map(|numbers| numbers.join("x"));
            Field::optional_text(key, text.as_deref())
        };
        field.prefixed(prefix)
    };
    [
        field("min", range.map(|range| range.min)),
        field("max", range.map(|range| range.max)),
    ]
}
