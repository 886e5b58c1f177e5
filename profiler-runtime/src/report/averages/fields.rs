//! The values of a row with their keys, as JSON and CSV have them.

use super::row::{AverageMemory, AverageRow};
use super::times::AverageTimes;
use crate::report::summary::Verdict;
use crate::report::text::Field;
use crate::report::times::TimeStats;

/// Returns the counts of a row.
pub(super) fn counts(row: &AverageRow) -> Vec<Field> {
    let launch_bound = row.launch_bound.map(|share| format!("{share:.6}"));
    let verdict = row.verdict().map(Verdict::as_str);
    vec![
        Field::raw("calls", row.calls),
        Field::raw("primitive_calls", row.primitive_calls),
        Field::raw("without_cuda", row.without_cuda),
        Field::raw("futures", row.futures),
        Field::nanoseconds("polled_ns", row.polled_ns),
        Field::raw("panicked", row.panicked),
        Field::raw("dropped_futures", row.dropped_futures),
        Field::raw("too_short", row.too_short),
        Field::optional("launch_bound", launch_bound),
        Field::optional_text("verdict", verdict),
    ]
}

/// Returns the times of a row on one device.
pub(super) fn times(times: &AverageTimes) -> Vec<Field> {
    let percent = |key, percent: f64| Field::raw(key, format!("{percent:.2}"));
    let mut fields = vec![Field::raw("calls", times.calls)];
    for field in TimeStats::from(times).fields() {
        // Each percentage follows its time.
        let share = match field.key() {
            "total_ns" => Some(percent("total_percent", times.total_percent)),
            "self_ns" => Some(percent("self_percent", times.self_percent)),
            _ => None,
        };
        fields.push(field);
        fields.extend(share);
    }
    fields
}

/// Returns the memory of a row.
pub(super) fn memory(memory: &AverageMemory) -> Vec<Field> {
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
