//! Whether calls are recorded at all, and what they are to bring along.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use super::Options;
use super::options::wants;
use crate::memory;
use crate::switch::with_control;
use crate::sync::Lock;

/// The sessions that record, and what each wants.
static RECORDERS: Lock<Vec<(u64, u32)>> = Lock::new(Vec::new());
static RECORDING: AtomicBool = AtomicBool::new(false);
static WANTS: AtomicU32 = AtomicU32::new(0);

/// Whether any session records.
#[inline]
pub(crate) fn is_recording() -> bool {
    RECORDING.load(Relaxed)
}

/// What calls are to bring along, as bits of [`wants`].
#[inline]
pub(crate) fn wanted() -> u32 {
    WANTS.load(Relaxed)
}

/// Whether calls are to bring their shapes along.
#[inline]
pub(crate) fn wants_shapes() -> bool {
    wanted() & wants::SHAPES != 0
}

/// Has all calls from now on recorded.
pub(super) fn begin(session: u64, options: Options) {
    change(|recorders| {
        recorders.retain(|(known, _)| *known != session);
        recorders.push((session, options.wants()));
    });
}

/// Ends that for one session.
pub(super) fn end(session: u64) {
    change(|recorders| recorders.retain(|(known, _)| *known != session));
}

fn change(change: impl FnOnce(&mut Vec<(u64, u32)>)) {
    with_control(|control| {
        let mut recorders = RECORDERS.lock();
        change(&mut recorders);
        let wanted = recorders.iter().fold(0, |all, (_, wants)| all | wants);
        memory::set_wanted(wanted & wants::MEMORY != 0);
        WANTS.store(wanted, Relaxed);
        let before = RECORDING.swap(!recorders.is_empty(), Relaxed);
        // Call sites keep what they have decided: they decide again only where it makes a difference.
        if before == recorders.is_empty() {
            control.recording = !recorders.is_empty();
            control.new_generation();
        }
    });
}
