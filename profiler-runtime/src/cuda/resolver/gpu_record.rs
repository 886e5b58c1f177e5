//! GPU times that the resolver has read, on their way to the sessions.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_host::sync::Lock;
use profiler_report::CudaLoss;
use profiler_report::internal::StreamKey;

use super::anchor::HostTime;
use crate::clock::{now, unix_ns};
use crate::cuda::context::measurement::GpuMeasurement;

/// A GPU time that was read, or lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GpuRecord {
    /// The key of the scope: the CPU record of the scope has the same one.
    pub(crate) key: u64,
    /// The id of the name.
    pub(crate) name: u32,
    /// `true` for a replay of a graph, which has no scope on the CPU.
    pub(crate) is_replay: bool,
    pub(crate) loss: Option<CudaLoss>,
    /// `true` if streams were bound to the scope: its time is the sum of several times, on one stream or more, and its start is not
    /// kept.
    pub(crate) is_bound: bool,
    pub(crate) stream_key: StreamKey,
    /// The ordinal of the device, if it is known.
    pub(crate) device: Option<u32>,
    /// When the GPU time began, in nanoseconds since the Unix epoch, if that is known.
    pub(crate) start: Option<i64>,
    pub(crate) uncertainty_ns: f32,
    pub(crate) ns: f64,
    /// `ns` without the scopes inside on the same stream.
    pub(crate) own: f64,
    /// When the scope ended on the CPU, in ticks. For a replay, when it was noticed.
    pub(crate) cpu_end: u64,
}

impl GpuRecord {
    /// Returns the record of a scope whose GPU time was read.
    pub(super) fn read(
        measurement: &GpuMeasurement,
        device: Option<u32>,
        ns: f64,
        own: f64,
        start: Option<HostTime>,
    ) -> Self {
        #[allow(clippy::cast_possible_truncation, reason = "a few digits suffice")]
        let uncertainty_ns = start.map_or(0.0, |start| start.uncertainty_ns as f32);
        Self {
            device,
            start: start.map(|start| unix_ns(start.wall)),
            uncertainty_ns,
            ns,
            own,
            ..Self::without_time(measurement)
        }
    }

    /// Returns the record of a replay that was noticed now.
    pub(super) fn replay(measurement: &GpuMeasurement, ns: f64, own: f64) -> Self {
        Self {
            is_replay: true,
            ns,
            own,
            cpu_end: now(),
            ..Self::without_time(measurement)
        }
    }

    /// Returns the record of a scope that has no GPU time.
    pub(super) fn lost(measurement: &GpuMeasurement, loss: CudaLoss) -> Self {
        Self {
            loss: Some(loss),
            ..Self::without_time(measurement)
        }
    }

    fn without_time(measurement: &GpuMeasurement) -> Self {
        Self {
            key: measurement.scope.key,
            name: measurement.scope.name,
            is_replay: false,
            loss: None,
            is_bound: measurement.bound.is_some(),
            stream_key: measurement.scope.stream_key,
            device: None,
            start: None,
            uncertainty_ns: 0.0,
            ns: 0.0,
            own: 0.0,
            cpu_end: measurement.span.end,
        }
    }
}

/// `true` while GPU times may belong to a window of a session.
static WANTED: AtomicBool = AtomicBool::new(false);
/// Records that no session has taken yet.
static READY: Lock<Vec<GpuRecord>> = Lock::new(Vec::new());

/// Returns `true` while GPU times may belong to a window of a session.
pub(super) fn are_wanted() -> bool {
    WANTED.load(Relaxed)
}

/// Starts or stops keeping GPU times for the sessions.
pub(crate) fn want_records(wanted: bool) {
    WANTED.store(wanted, Relaxed);
}

/// Keeps a GPU time for the sessions.
pub(super) fn push(record: GpuRecord) {
    READY.lock().push(record);
}

/// Takes the records that are ready, in the order in which they were read.
pub(crate) fn take_records() -> Vec<GpuRecord> {
    mem::take(&mut *READY.lock())
}
