//! The way of finished scopes to the resolver.

use super::state::GpuThread;
use crate::cuda::context::measurement::GpuMeasurement;
use crate::cuda::resolver;
use crate::switch::with_control;
use crate::sync::ReentrancyGuard;
use crate::sync::Rings;
use crate::sync::ring::Producer;

static RINGS: Rings<Box<GpuMeasurement>> = Rings::new();

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    Taken,
    /// There was no room for it.
    Full,
    /// The same, and its log entry has reached its logger.
    FullAfterLog,
    /// There was nothing to be pushed: the scope had been given up.
    Nothing,
}

/// Hands an item to the resolver; the error is one that there is no room for.
#[inline]
pub(crate) fn push(
    thread: &mut GpuThread,
    item: Box<GpuMeasurement>,
) -> Result<(), Box<GpuMeasurement>> {
    let ring = match &mut thread.ring {
        Some(ring) => ring,
        empty => match make() {
            Some(made) => empty.insert(made),
            None => return Err(item),
        },
    };
    match ring.push(item) {
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

#[cold]
fn make() -> Option<Producer<Box<GpuMeasurement>>> {
    let _busy = ReentrancyGuard::try_enter();
    let capacity = with_control(|control| control.settings.ring);
    // Without memory the next scope tries again.
    resolver::ensure_started().then(|| RINGS.add(capacity, ()))?
}

/// Moves what stands in the rings now to `batch`.
pub(crate) fn drain(batch: &mut Vec<Box<GpuMeasurement>>) {
    RINGS.drain(batch, |_| ());
}

/// How many items wait in the rings.
pub(crate) fn waiting() -> usize {
    RINGS.waiting()
}
