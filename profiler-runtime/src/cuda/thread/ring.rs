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
    match ring.push(measurement) {
        Ok(()) => {
            if ring.is_half_full() {
                resolver::wake();
            }
            Ok(())
        }
        Err(rejected) => {
            resolver::wake();
            Err(rejected)
        }
    }
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
