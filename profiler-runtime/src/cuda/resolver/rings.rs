//! The rings through which measured threads send finished scopes to the resolver.

use profiler_host::sync::ReentrancyGuard;
use profiler_host::sync::Rings;
use profiler_host::sync::ring::Producer;

use crate::cuda::context::measurement::GpuMeasurement;
use crate::switch::with_control;

static RINGS: Rings<Box<GpuMeasurement>> = Rings::new();

/// Creates a thread's ring. After a failure, the next scope tries again.
#[cold]
pub(crate) fn create() -> Option<Producer<Box<GpuMeasurement>>> {
    let _guard = ReentrancyGuard::try_enter();
    let capacity = with_control(|control| control.settings.ring);
    super::ensure_started().then(|| RINGS.add(capacity, ()))?
}

/// Moves the measurements that are in the rings now to `batch`.
#[allow(clippy::vec_box, reason = "the boxes go back to their pools")]
pub(super) fn drain(batch: &mut Vec<Box<GpuMeasurement>>) {
    RINGS.drain(batch, |_| ());
}

/// Returns how many measurements wait in the rings.
pub(super) fn waiting() -> usize {
    RINGS.waiting()
}
