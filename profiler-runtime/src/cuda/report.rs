//! GPU times, as sessions are told of them.

use super::anchor::Place;
use super::gpu_record::{self, GpuRecord};
use super::item::Item;
use super::loss::CudaLoss;
use crate::clock::unix_ns;

/// A GPU time that was read.
pub(super) fn read(item: &Item, device: Option<u32>, ns: f64, own: f64, place: Option<Place>) {
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
pub(super) fn replay(item: &Item, ns: f64, own: f64) {
    gpu_record::push(GpuRecord {
        is_replay: true,
        ns,
        own,
        cpu_end: crate::clock::now(),
        ..without(item, None)
    });
}

/// A GPU time that is not to be had.
pub(super) fn lost(item: &Item, loss: CudaLoss) {
    gpu_record::push(without(item, Some(loss)));
}

fn without(item: &Item, loss: Option<CudaLoss>) -> GpuRecord {
    GpuRecord {
        key: item.link.key,
        name: item.link.name,
        is_replay: false,
        loss,
        line: item.link.line,
        device: None,
        start: None,
        uncertainty_ns: 0.0,
        ns: 0.0,
        own: 0.0,
        cpu_end: item.span.end,
    }
}
