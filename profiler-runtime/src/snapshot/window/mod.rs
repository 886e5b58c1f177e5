//! What the time line of a window is made with: times, names of tracks, streams, counters.

pub(super) mod counters;
pub(super) mod gpu_counters;
pub(super) mod short_names;
pub(super) mod streams;
pub(super) mod times;
pub(super) mod track_names;
pub(super) mod work_streams;

use crate::cuda::GpuRecord;

/// Returns `true` if a GPU time can be placed on its stream.
pub(super) fn has_start(gpu: &GpuRecord) -> bool {
    gpu.loss.is_none() && gpu.start.is_some()
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "no time is as long as centuries"
)]
pub(super) fn whole(ns: f64) -> i64 {
    ns.round() as i64
}
