//! GPU times that the resolver has read, on their way to the sessions.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::cuda::loss::CudaLoss;
use crate::stream_key::StreamKey;
use crate::sync::Lock;

/// A GPU time that was read, or lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GpuRecord {
    /// That of the scope's record.
    pub(crate) key: u64,
    pub(crate) name: u32,
    /// Whether it is a replay of a graph, which no scope on the CPU belongs to.
    pub(crate) is_replay: bool,
    pub(crate) loss: Option<CudaLoss>,
    pub(crate) stream_key: StreamKey,
    /// The ordinal of the device, where it is known.
    pub(crate) device: Option<u32>,
    /// When it began, in nanoseconds since the Unix epoch; none where no anchor was to be had.
    pub(crate) start: Option<i64>,
    pub(crate) uncertainty_ns: f32,
    pub(crate) ns: f64,
    /// Without its children on the same stream.
    pub(crate) own: f64,
    /// When the scope ended on the CPU, in ticks.
    pub(crate) cpu_end: u64,
}

/// `true` while GPU times may belong to a window of a session.
static WANTED: AtomicBool = AtomicBool::new(false);
/// Records that no session has taken yet.
static READY: Lock<Vec<GpuRecord>> = Lock::new(Vec::new());

/// Returns `true` while GPU times may belong to a window of a session.
pub(crate) fn are_wanted() -> bool {
    WANTED.load(Relaxed)
}

/// Keeps GPU times for the sessions from now on, or stops keeping them.
pub(crate) fn want_records(wanted: bool) {
    WANTED.store(wanted, Relaxed);
}

/// Keeps a GPU time for the sessions.
pub(crate) fn push(record: GpuRecord) {
    READY.lock().push(record);
}

/// Takes the records that are ready, in the order in which they were read.
pub(crate) fn take_records() -> Vec<GpuRecord> {
    mem::take(&mut *READY.lock())
}
