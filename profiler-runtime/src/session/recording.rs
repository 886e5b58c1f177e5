//! Which sessions record, and which details they want of each scope.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use profiler_host::sync::Lock;

use super::options::details;
use super::{SessionOptions, kernels};
use crate::memory;
use crate::switch::with_control;

/// The sessions that record, each with the details it wants.
static RECORDERS: Lock<Vec<(u64, SessionOptions)>> = Lock::new(Vec::new());
static RECORDING: AtomicBool = AtomicBool::new(false);
static WANTS: AtomicU32 = AtomicU32::new(0);

/// Returns `true` while any session records.
#[inline]
pub(crate) fn is_recording() -> bool {
    RECORDING.load(Relaxed)
}

/// Returns the details that scopes record, as bits of [`details`].
#[inline]
pub(crate) fn wanted() -> u32 {
    WANTS.load(Relaxed)
}

/// Returns `true` if scopes record any details.
#[inline]
pub(crate) fn wants_details() -> bool {
    wanted() != 0
}

/// Returns `true` if scopes record their shapes.
#[inline]
pub(crate) fn wants_shapes() -> bool {
    wanted() & details::SHAPES != 0
}

/// Starts recording for a session, or changes the details it wants.
pub(super) fn begin(session: u64, options: SessionOptions) {
    change(|recorders| {
        recorders.retain(|(known, _)| *known != session);
        recorders.push((session, options));
    });
}

/// Stops recording for a session.
pub(super) fn end(session: u64) {
    change(|recorders| recorders.retain(|(known, _)| *known != session));
}

fn change(change: impl FnOnce(&mut Vec<(u64, SessionOptions)>)) {
    let demand = with_control(|control| {
        let mut recorders = RECORDERS.lock();
        change(&mut recorders);
        let options = recorders.iter().map(|(_, options)| options);
        let wanted = options
            .clone()
            .fold(0, |all, options| all | options.wants());
        let demand = options.map(|options| options.demand()).max();
        memory::set_wanted(wanted & details::MEMORY != 0);
        WANTS.store(wanted, Relaxed);
        let before = RECORDING.swap(!recorders.is_empty(), Relaxed);
        // Start a new generation only if recording starts or stops: otherwise the decisions of the call sites stay
        // valid.
        if before == recorders.is_empty() {
            control.recording = !recorders.is_empty();
            control.new_generation();
        }
        demand
    });
    // With the locks released: this may start a thread.
    kernels::recorders_want(demand.unwrap_or_default());
}
