//! The columns of a table of averages.

use super::GroupBy;
use crate::report::row::{MemoryStats, Row};
use crate::report::text::cells::{bytes, percent, time};
use crate::report::text::table::{Column, calls};
use crate::report::times::Times;

type OfTimes = fn(&Times) -> f64;

/// Columns that torch does not have.
const SPREAD: [(&str, OfTimes); 6] = [
    ("std", |times| times.std_ns),
    ("min", |times| times.min_ns),
    ("max", |times| times.max_ns),
    ("p50", |times| times.p50_ns),
    ("p95", |times| times.p95_ns),
    ("p99", |times| times.p99_ns),
];

/// Returns the columns except names and stacks; columns without any value are left out.
pub(super) fn columns(rows: &[Row], by: GroupBy, statistics: bool) -> Vec<Column> {
    let mut columns = Vec::new();
    if rows.iter().any(|row| row.cpu.is_some()) {
        cpu(&mut columns, rows, statistics);
    }
    if rows.iter().any(|row| row.cuda.is_some()) {
        cuda(&mut columns, rows, statistics);
    }
    if rows.iter().any(|row| row.memory.is_some()) {
        memory(&mut columns, rows, statistics);
    }
    columns.push(Column::of(rows, "# of Calls", |row| {
        Some(calls(row.calls, row.primitive_calls))
    }));
    if by.has_shapes() {
        let shapes = |row: &Row| row.shapes_text();
        columns.push(Column::text(
            "Input Shapes",
            rows.iter().map(shapes).collect(),
        ));
    }
    columns
}

fn cpu(columns: &mut Vec<Column>, rows: &[Row], statistics: bool) {
    let mut add = |title: &str, cell: &dyn Fn(&Times) -> String| {
        columns.push(Column::of(rows, title, |row| row.cpu.as_ref().map(cell)));
    };
    add("Self CPU %", &|times| percent(times.self_percent));
    add("Self CPU", &|times| time(times.self_ns));
    add("CPU total %", &|times| percent(times.total_percent));
    add("CPU total", &|times| time(times.total_ns));
    add("CPU time avg", &|times| time(times.mean_ns));
    for (title, value) in SPREAD.into_iter().filter(|_| statistics) {
        add(&format!("CPU {title}"), &|times| time(value(times)));
    }
    if rows.iter().any(|row| row.futures > 0) {
        columns.push(Column::of(rows, "Polled", |row| {
            (row.futures > 0).then(|| time(row.polled_ns))
        }));
    }
}

fn cuda(columns: &mut Vec<Column>, rows: &[Row], statistics: bool) {
    let mut add = |title: &str, cell: &dyn Fn(&Times) -> String| {
        columns.push(Column::of(rows, title, |row| row.cuda.as_ref().map(cell)));
    };
    add("Self CUDA", &|times| time(times.self_ns));
    add("Self CUDA %", &|times| percent(times.self_percent));
    if statistics {
        add("CUDA total %", &|times| percent(times.total_percent));
    }
    add("CUDA total", &|times| time(times.total_ns));
    add("CUDA time avg", &|times| time(times.mean_ns));
    if !statistics {
        return;
    }
    for (title, value) in SPREAD {
        add(&format!("CUDA {title}"), &|times| time(value(times)));
    }
    columns.push(Column::of(rows, "% launch", |row| {
        row.launch_bound
            .map(|share| format!("{:.1}%", share * 100.0))
    }));
    columns.push(Column::of(rows, "Verdict", |row| {
        row.verdict().map(|verdict| verdict.to_string())
    }));
}

fn memory(columns: &mut Vec<Column>, rows: &[Row], statistics: bool) {
    let mut host = |title: &str, cell: fn(&MemoryStats) -> i64| {
        columns.push(Column::of(rows, title, |row| {
            row.memory.as_ref().map(|memory| bytes(cell(memory)))
        }));
    };
    host("CPU Mem", |memory| memory.cpu_net);
    host("Self CPU Mem", |memory| memory.self_cpu_net);
    if statistics {
        host("CPU Mem alloc", |memory| signed(memory.cpu_allocated));
        host("Self CPU Mem alloc", |memory| {
            signed(memory.self_cpu_allocated)
        });
        host("CPU Mem peak", |memory| signed(memory.cpu_peak));
        host("CPU Mem in use", |memory| signed(memory.cpu_in_use));
    }
    if !rows
        .iter()
        .any(|row| row.memory.is_some_and(|memory| memory.cuda_net.is_some()))
    {
        return;
    }
    let mut device = |title: &str, cell: fn(&MemoryStats) -> Option<i64>| {
        columns.push(Column::of(rows, title, |row| {
            row.memory.as_ref().and_then(cell).map(bytes)
        }));
    };
    device("CUDA Mem", |memory| memory.cuda_net);
    device("Self CUDA Mem", |memory| memory.self_cuda_net);
    if statistics {
        device("CUDA Mem in use", |memory| memory.cuda_in_use.map(signed));
        device("CUDA Mem reserved", |memory| {
            memory.cuda_reserved.map(signed)
        });
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
