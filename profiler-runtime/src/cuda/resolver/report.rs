//! GPU times, as sessions are told of them.

use super::anchor::Place;
use super::gpu_record::{self, GpuRecord};
use crate::clock::unix_ns;
use crate::cuda::context::measurement::GpuMeasurement;
use crate::cuda::loss::CudaLoss;

/// A GPU time that was read.
pub(crate) fn read(
    item: &GpuMeasurement,
    device: Option<u32>,
    ns: f64,
    own: f64,
    place: Option<Place>,
) {
    #[allow(clippy::cast_possible_truncation, reason = "some digits are enough")]
    let uncertainty_ns = place.map_or(0.0, |place| place.uncertainty_ns as f32);
    gpu_record::push(GpuRecord {
        device,
        start: place.map(|place| unix_ns(place.wall)),
        uncertainty_ns,
        ns,
        own,
        ..without(item, None)
    });
}

/// The replay of a graph.
pub(crate) fn replay(item: &GpuMeasurement, ns: f64, own: f64) {
    gpu_record::push(GpuRecord {
        is_replay: true,
        ns,
        own,
        cpu_end: crate::clock::now(),
        ..without(item, None)
    });
}

/// A GPU time that is not to be had.
pub(crate) fn lost(item: &GpuMeasurement, loss: CudaLoss) {
    gpu_record::push(without(item, Some(loss)));
}

fn without(item: &GpuMeasurement, loss: Option<CudaLoss>) -> GpuRecord {
    GpuRecord {
        key: item.scope.key,
        name: item.scope.name,
        is_replay: false,
        loss,
        stream_key: item.scope.stream_key,
        device: None,
        start: None,
        uncertainty_ns: 0.0,
        ns: 0.0,
        own: 0.0,
        cpu_end: item.span.end,
    }
}
