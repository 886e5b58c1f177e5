//! Windows of sessions as files, and as plain data.

mod among;
#[cfg(feature = "trace")]
mod chrome;
mod counters;
mod gpu_counters;
mod place;
mod short_names;
mod streams;
#[cfg(feature = "export")]
mod timeline;
mod times;
mod track_names;
mod work_streams;

#[cfg(feature = "trace")]
pub use chrome::{LaunchCategory, TensorBoardTraces, tensorboard_trace_handler};

use crate::cuda::GpuRecord;

/// Returns `true` if a GPU time can be placed on its stream.
fn has_start(gpu: &GpuRecord) -> bool {
    gpu.loss.is_none() && gpu.start.is_some()
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "no time is as long as centuries"
)]
fn whole(ns: f64) -> i64 {
    ns.round() as i64
}
