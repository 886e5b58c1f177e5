//! Kernels as tables.

use std::fmt::Write;

use profiler_host::diagnostics::{printable, warn_once};

use super::row::{KernelRow, KernelRowKind, KernelUse, MinMax};
use super::{Kernels, ScopeKernels};
use crate::gpu_work::MemoryKind;
use crate::in_order::InOrder as _;
use crate::options::TableOptions;
use crate::sort::SortKey;
use crate::text::table::{Column, Table};
use crate::text::units::{bytes, percent, time};

/// The name above work that no measured scope launched.
const NO_SCOPE: &str = "(no measured scope)";

/// A line of the second table: the name of a scope, or one of its rows.
enum Line<'k> {
    Scope(&'k ScopeKernels),
    Row(&'k KernelRow),
}

pub(super) fn render(kernels: &Kernels, options: &TableOptions) -> String {
    let mut text = String::new();
    if kernels.scopes.is_empty() && !kernels.notes.is_empty() {
        // They say why.
    } else if kernels.scopes.is_empty() {
        text.push_str(if kernels.is_recorded {
            "no kernel ran in the window\n"
        } else {
            "no kernels were recorded: they are in windows of sessions with GPU times, where CUPTI is found \
             (PROFILER_KERNELS)\n"
        });
    } else {
        text += &options.draw(scopes(kernels));
        text.push('\n');
        let (table, notes) = rows(kernels, options);
        text += &options.draw(table);
        text += &notes;
    }
    let mut notes = String::new();
    options.push_notes(&mut notes, kernels.notes.clone());
    let notes = options.fill(&text, notes);
    text + &notes
}

fn scope_name(scope: &ScopeKernels) -> String {
    let name = scope.scope.as_deref();
    name.map_or_else(|| NO_SCOPE.to_owned(), printable)
}

/// Formats how many launches each call makes. Few of many calls are not none.
fn per_call(count: f64) -> String {
    if count > 0.0 && count < 0.05 {
        "under 0.1".to_owned()
    } else {
        format!("{count:.1}")
    }
}

/// Returns the table of the scopes: what each of them did with the device.
fn scopes(kernels: &Kernels) -> Table {
    let scopes = &kernels.scopes;
    let mut columns = vec![
        Column::of(scopes, "# of Calls", |scope| {
            scope.scope.is_some().then(|| scope.calls.to_string())
        })
        .rank(2),
        Column::of(scopes, "Launches/call", |scope| {
            scope.launches_per_call().map(per_call)
        })
        .rank(1),
        Column::of(scopes, "GPU busy", |scope| Some(time(scope.busy_ns))),
        Column::of(scopes, "GPU idle", |scope| scope.idle_ns.map(time)),
        Column::of(scopes, "Launch gaps", |scope| scope.launch_gap_ns.map(time)),
    ];
    if scopes.iter().any(|scope| scope.copy_ns > 0.0) {
        columns.push(Column::of(scopes, "Copies", |scope| {
            Some(time(scope.copy_ns))
        }));
    }
    columns.push(Column::of(scopes, "Verdict", |scope| {
        scope.verdict().map(|verdict| verdict.to_string())
    }));
    Table {
        title: "Scope",
        labels: scopes.iter().map(scope_name).collect(),
        columns,
        hottest: Some(0),
    }
}

/// Returns the table of the kernels and copies by scope, and the lines below it.
fn rows<'k>(kernels: &'k Kernels, options: &TableOptions) -> (Table, String) {
    let mut notes = String::new();
    let key = match &options.sort_by {
        None => SortKey::CudaTimeTotal,
        Some(Ok(key)) if value(*key, &KernelRow::default()).is_some() || *key == SortKey::Name => {
            *key
        }
        Some(Ok(key)) => {
            let _ = writeln!(
                notes,
                "not sorted by {key}: kernels have GPU times, calls and names"
            );
            SortKey::CudaTimeTotal
        }
        Some(Err(error)) => {
            let note = format!("not sorted: {error}");
            warn_once(&note);
            let _ = writeln!(notes, "{note}");
            SortKey::CudaTimeTotal
        }
    };
    let mut shown: Vec<(&'k ScopeKernels, &'k KernelRow)> = Vec::new();
    for scope in &kernels.scopes {
        let mut rows: Vec<&KernelRow> = scope.rows.iter().collect();
        rows.order_by(|one, other| {
            let [one_value, other_value] = [one, other].map(|row| value(key, row).unwrap_or(0.0));
            let largest = other_value.total_cmp(&one_value);
            largest.then_with(|| one.short.cmp(&other.short))
        });
        shown.extend(rows.into_iter().map(|row| (scope, row)));
    }
    let hidden = options.limit(&mut shown);
    if hidden > 0 {
        notes.insert_str(0, &format!("… and {hidden} more\n"));
    }
    let mut lines: Vec<Line<'k>> = Vec::with_capacity(2 * shown.len());
    let mut last: Option<&ScopeKernels> = None;
    for (scope, row) in shown {
        if last.is_none_or(|last| !std::ptr::eq(last, scope)) {
            lines.push(Line::Scope(scope));
            last = Some(scope);
        }
        lines.push(Line::Row(row));
    }
    let table = Table {
        title: "Kernel",
        labels: lines.iter().map(label).collect(),
        columns: columns(&lines, options.statistics),
        hottest: None,
    };
    (table, notes)
}

fn label(line: &Line<'_>) -> String {
    match line {
        Line::Scope(scope) => scope_name(scope),
        Line::Row(row) => format!("  {}", printable(&row.short)),
    }
}

/// Returns the value that rows are sorted by; `None` if they have none.
fn value(key: SortKey, row: &KernelRow) -> Option<f64> {
    let times = &row.times;
    Some(match key {
        SortKey::CudaTimeTotal | SortKey::SelfCudaTimeTotal => times.total_ns,
        SortKey::CudaTime => times.mean_ns,
        SortKey::CudaTimeStd => times.std_ns,
        SortKey::CudaTimeMin => times.min_ns,
        SortKey::CudaTimeMax => times.max_ns,
        SortKey::CudaTimeP50 => times.p50_ns,
        SortKey::CudaTimeP95 => times.p95_ns,
        SortKey::CudaTimeP99 => times.p99_ns,
        SortKey::Count => times.calls as f64,
        _ => return None,
    })
}

fn columns(lines: &[Line<'_>], has_statistics: bool) -> Vec<Column> {
    // The names of scopes have no cells; a dash stands for a value that a row does not have.
    let column = |title: &str, cell: &dyn Fn(&KernelRow) -> Option<String>| {
        let cells = lines.iter().map(|line| match line {
            Line::Scope(_) => String::new(),
            Line::Row(row) => cell(row).unwrap_or_else(|| "-".to_owned()),
        });
        Column::numbers(title, cells.collect())
    };
    let kernel = |row: &KernelRow| match row.kind {
        KernelRowKind::Kernel(kernel) => Some(kernel),
        _ => None,
    };
    let mut columns = vec![
        column("Share", &|row| Some(percent(row.times.total_percent))),
        column("# of Runs", &|row| Some(row.times.calls.to_string())),
        column("Total", &|row| Some(time(row.times.total_ns))),
        column("Mean", &|row| Some(time(row.times.mean_ns))),
    ];
    if has_statistics {
        columns.push(column("Min", &|row| Some(time(row.times.min_ns))).rank(6));
        columns.push(column("p50", &|row| Some(time(row.times.p50_ns))).rank(6));
    }
    columns.push(column("p95", &|row| Some(time(row.times.p95_ns))).rank(5));
    if has_statistics {
        columns.push(column("Max", &|row| Some(time(row.times.max_ns))).rank(6));
    }
    let rows = || {
        lines.iter().filter_map(|line| match line {
            Line::Scope(_) => None,
            Line::Row(row) => Some(*row),
        })
    };
    if rows().any(|row| kernel(row).is_some()) {
        let of_kernel =
            |text: fn(KernelUse) -> String| move |row: &KernelRow| kernel(row).map(text);
        columns.extend([
            column("Grid", &of_kernel(|kernel| extents(kernel.grid))).rank(3),
            column("Block", &of_kernel(|kernel| extents(kernel.block))).rank(3),
            column("Registers", &of_kernel(|kernel| numbers(kernel.registers))).rank(4),
            column("Shared", &of_kernel(|kernel| memory(kernel.shared_bytes))).rank(4),
        ]);
    }
    if rows().any(|row| row.bytes().is_some()) {
        columns.extend([
            column("Direction", &|row| {
                copy_direction(row.kind).map(str::to_owned)
            })
            .rank(3),
            column("Bytes", &|row| {
                let count = i64::try_from(row.bytes()?).unwrap_or(i64::MAX);
                Some(bytes(count))
            })
            .rank(2),
            column("GB/s", &|row| {
                row.gigabytes_per_second()
                    .map(|speed| format!("{speed:.2}"))
            })
            .rank(1),
        ]);
    }
    columns
}

/// Formats grids or blocks: `256`, `16x16`, `64…128`.
fn extents(range: MinMax<[u32; 3]>) -> String {
    let extent = |[x, y, z]: [u32; 3]| match (y, z) {
        (0 | 1, 0 | 1) => x.to_string(),
        (_, 0 | 1) => format!("{x}x{y}"),
        _ => format!("{x}x{y}x{z}"),
    };
    joined(range.min, range.max, extent)
}

fn numbers(range: MinMax<u32>) -> String {
    joined(range.min, range.max, |count| count.to_string())
}

fn memory(range: MinMax<u32>) -> String {
    joined(range.min, range.max, |count| bytes(count.into()))
}

fn joined<T: Copy + PartialEq>(min: T, max: T, text: impl Fn(T) -> String) -> String {
    if min == max {
        text(min)
    } else {
        format!("{}…{}", text(min), text(max))
    }
}

/// Returns the direction of copies: from the host (H) or a device (D) to one of them.
pub(super) fn copy_direction(kind: KernelRowKind) -> Option<&'static str> {
    let KernelRowKind::Copy(copy) = kind else {
        return None;
    };
    let is_host = |memory: MemoryKind| match memory {
        MemoryKind::Pageable | MemoryKind::Pinned => Some(true),
        MemoryKind::Device | MemoryKind::Array => Some(false),
        MemoryKind::Managed | MemoryKind::Unknown => None,
    };
    Some(match (is_host(copy.from)?, is_host(copy.to)?) {
        (true, true) => "HtoH",
        (true, false) => "HtoD",
        (false, true) => "DtoH",
        (false, false) => "DtoD",
    })
}

pub(super) const fn memory_name(memory: MemoryKind) -> &'static str {
    match memory {
        MemoryKind::Unknown => "unknown",
        MemoryKind::Pageable => "pageable",
        MemoryKind::Pinned => "pinned",
        MemoryKind::Device => "device",
        MemoryKind::Array => "array",
        MemoryKind::Managed => "managed",
    }
}

#[cfg(test)]
mod tests {
    use super::per_call;

    #[test]
    fn launches_of_few_calls_do_not_look_like_none() {
        let shown = [0.0, 0.02, 0.05, 1.0, 3.74].map(per_call);
        assert_eq!(shown, ["0.0", "under 0.1", "0.1", "1.0", "3.7"]);
    }
}
