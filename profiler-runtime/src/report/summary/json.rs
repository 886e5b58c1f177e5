//! A summary as JSON.

use super::fields::{cuda_fields, fields};
use super::{CudaTimes, Row, Summary};
use crate::cuda::CudaHealth;
use crate::report::text::Field;
use crate::report::text::json::{array, lines, object, string};

pub(super) fn render(summary: &Summary) -> String {
    let dropped = summary.dropped.iter();
    let dropped = object(dropped.map(|(reason, entries)| Field::raw(reason.key(), entries)));
    let own_cost = object([
        Field::raw(
            "measured_threads",
            format!("{:.9}", summary.own_cost.measured_threads),
        ),
        Field::raw("background", format!("{:.9}", summary.own_cost.background)),
    ]);
    let notices = array(summary.notices.iter().map(|notice| string(notice)));
    let nothing_measured = summary.nothing_measured.as_deref();
    object([
        Field::nanoseconds("wall_ns", summary.wall_ns),
        Field::raw("percentile_error", summary.percentile_error),
        Field::raw("delivered", summary.delivered),
        Field::raw("dropped", dropped),
        Field::raw("unsaved", summary.unsaved),
        Field::raw("unmeasured", summary.unmeasured),
        Field::raw("cuda", health(&summary.cuda)),
        Field::raw("own_cost", own_cost),
        Field::raw("notices", notices),
        Field::optional_text("nothing_measured", nothing_measured),
        Field::raw("rows", lines(summary.rows.iter().map(row))),
    ]) + "\n"
}

fn row(row: &Row) -> String {
    let mut fields = fields(row);
    fields.push(Field::optional("cuda", row.cuda.as_ref().map(cuda)));
    object(fields)
}

fn cuda(times: &CudaTimes) -> String {
    let mut fields = cuda_fields(times);
    let streams = times.streams.iter().map(|stream| string(stream));
    fields.extend([
        Field::text("verdict", times.verdict().as_str()),
        Field::raw("streams", array(streams)),
    ]);
    object(fields)
}

fn health(health: &CudaHealth) -> String {
    let lost = health.lost.iter();
    let lost = object(lost.map(|(reason, calls)| Field::raw(reason.key(), calls)));
    let uncertainty = health.uncertainty_ns.map(|ns| format!("{ns:.1}"));
    let records = object([
        Field::raw("timed", health.records.timed),
        Field::raw("long", health.records.long),
        Field::nanoseconds("longest_ns", health.records.longest_ns),
    ]);
    object([
        Field::text("status", &health.status),
        Field::raw("ready", health.ready),
        Field::raw("in_flight", health.in_flight),
        Field::raw("pairs", health.pairs),
        Field::raw("high_water", health.high_water),
        Field::raw("lost", lost),
        Field::optional("uncertainty_ns", uncertainty),
        Field::raw("rejected_times", health.rejected_times),
        Field::raw("records", records),
    ])
}
