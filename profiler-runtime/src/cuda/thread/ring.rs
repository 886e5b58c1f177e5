//! The rings through which measured threads send finished scopes to the resolver.

use super::state::GpuThread;
use crate::cuda::context::measurement::GpuMeasurement;
use crate::cuda::resolver;
use crate::switch::with_control;
use crate::sync::ReentrancyGuard;
use crate::sync::Rings;
use crate::sync::ring::Producer;

static RINGS: Rings<Box<GpuMeasurement>> = Rings::new();

/// Sends a measurement to the resolver.
///
/// # Errors
///
/// Returns the measurement if the thread's ring is full or could not be created.
#[inline(always)]
pub(crate) fn push(
    thread: &mut GpuThread,
    measurement: Box<GpuMeasurement>,
) -> Result<(), Box<GpuMeasurement>> {
    let ring = match &mut thread.ring {
        Some(ring) => ring,
        empty => match create() {
            Some(created) => empty.insert(created),
            None => return Err(measurement),
        },
    };
    ring.push_early_from(measurement, |measurement| measurement)
        .or_else(|measurement| push_late(ring, measurement))
}

/// [`push`] if half of the ring is waiting.
#[cold]
#[inline(never)]
fn push_late(
    ring: &mut Producer<Box<GpuMeasurement>>,
    measurement: Box<GpuMeasurement>,
) -> Result<(), Box<GpuMeasurement>> {
    let pushed = ring.push(measurement);
    if pushed.is_err() || ring.is_half_full() {
        resolver::wake();
    }
    pushed
}

/// Creates the thread's ring. After a failure, the next scope tries again.
#[cold]
fn create() -> Option<Producer<Box<GpuMeasurement>>> {
    let _guard = ReentrancyGuard::try_enter();
    let capacity = with_control(|control| control.settings.ring);
    resolver::ensure_started().then(|| RINGS.add(capacity, ()))?
}

/// Moves the measurements that are in the rings now to `batch`.
#[allow(clippy::vec_box, reason = "the boxes go back to their pools")]
pub(crate) fn drain(batch: &mut Vec<Box<GpuMeasurement>>) {
    RINGS.drain(batch, |_| ());
}

/// Returns how many measurements wait in the rings.
pub(crate) fn waiting() -> usize {
    RINGS.waiting()
}
