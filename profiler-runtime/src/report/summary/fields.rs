//! The values of a row with their keys, as JSON and CSV have them.

use super::{CudaTimes, Row};
use crate::report::text::Field;
use crate::report::times::TimeStats;

/// Returns the values of a row except its GPU times.
pub(super) fn fields(row: &Row) -> Vec<Field> {
    let mut fields = vec![
        Field::text("name", &row.name),
        Field::text("tag", &row.tag),
        Field::text("location", &row.location),
        Field::raw("calls", row.calls),
        Field::raw("primitive_calls", row.primitive_calls),
    ];
    fields.extend(TimeStats::from(row).fields());
    fields.extend([
        Field::raw("wall_share", format!("{:.6}", row.wall_share)),
        Field::raw("futures", row.futures),
        Field::nanoseconds("polled_ns", row.polled_ns),
        Field::raw("panicked", row.panicked),
        Field::raw("dropped_futures", row.dropped_futures),
        Field::raw("open", row.open),
        Field::raw("dropped_entries", row.dropped_entries),
        Field::raw("out_of_order", row.out_of_order),
        Field::raw("too_short", row.too_short),
        Field::raw("without_cuda", row.without_cuda),
        Field::raw("without_stream", row.without_stream),
        Field::text("source", row.source.as_str()),
    ]);
    fields
}

/// Returns the numbers of a row's GPU times.
pub(super) fn cuda_fields(times: &CudaTimes) -> Vec<Field> {
    let mut fields = vec![Field::raw("calls", times.calls)];
    fields.extend(TimeStats::from(times).fields());
    fields.extend([
        Field::raw("launch_bound", format!("{:.6}", times.launch_bound)),
        Field::nanoseconds("other_streams_ns", times.other_streams_ns),
        Field::raw("idle_stream", times.idle_stream),
    ]);
    fields
}
