//! A summary as JSON.

use super::{Summary, schema};
use crate::call_tree::CallTree;
use crate::cuda_health::CudaHealth;
use crate::fields;
use crate::sampled_gpu::SampledGpu;
use crate::sampled_idle::SampledIdle;
use crate::text::json::{array, lines, object, string};
use crate::text::{Field, nanoseconds};

pub(super) fn render(summary: &Summary) -> String {
    let dropped = summary.dropped.iter();
    let dropped = object(dropped.map(|(reason, entries)| Field::raw(reason.key(), entries)));
    let lost_spans = summary.lost_spans.iter();
    let lost_spans = object(lost_spans.map(|(reason, spans)| Field::raw(reason.key(), spans)));
    let own_cost = object([
        Field::raw(
            "measured_threads",
            format!("{:.9}", summary.own_cost.measured_threads),
        ),
        Field::raw("processor", format!("{:.9}", summary.own_cost.processor)),
        Field::raw("background", format!("{:.9}", summary.own_cost.background)),
        Field::nanoseconds("call_ns", summary.own_cost.call_ns),
        Field::nanoseconds("thread_time_ns", summary.own_cost.thread_time_ns),
        Field::nanoseconds("gpu_time_ns", summary.own_cost.gpu_time_ns),
    ]);
    let call_tree = summary.call_tree.as_deref();
    let notices = array(summary.notices.iter().map(|notice| string(notice)));
    let nothing_measured = summary.nothing_measured.as_deref();
    let notes = array(summary.notes.iter().map(|note| string(note)));
    let total = |key, ns: Option<f64>| Field::optional(key, ns.map(nanoseconds));
    object([
        Field::raw("schema_version", schema::VERSION),
        Field::raw("environment", summary.environment.to_json()),
        total("self_cpu_time_total_ns", summary.self_cpu_time_total_ns),
        total("self_cuda_time_total_ns", summary.self_cuda_time_total_ns),
        Field::nanoseconds("wall_ns", summary.wall_ns),
        Field::optional("interval_ns", summary.interval_ns),
        Field::raw("is_last", summary.is_last),
        Field::raw("percentile_error", summary.percentile_error),
        Field::raw("delivered", summary.delivered),
        Field::raw("dropped", dropped),
        Field::raw("unsaved", summary.unsaved),
        Field::raw("pending", summary.pending),
        Field::raw("unmeasured", summary.unmeasured),
        Field::raw("refused", summary.refused),
        Field::raw("lost_spans", lost_spans),
        Field::raw("cuda", health(&summary.cuda)),
        Field::raw("gpus", array(summary.gpus.iter().map(SampledGpu::to_json))),
        Field::raw(
            "gpu_idle",
            array(summary.gpu_idle.iter().map(SampledIdle::to_json)),
        ),
        Field::raw("own_cost", own_cost),
        Field::raw("notices", notices),
        Field::optional_text("nothing_measured", nothing_measured),
        Field::raw("notes", notes),
        Field::raw("rows", lines(summary.rows.iter().map(fields::to_json))),
        Field::optional("call_tree", call_tree.map(CallTree::to_json)),
    ]) + "\n"
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
        Field::raw("is_explained", health.is_explained),
    ])
}
