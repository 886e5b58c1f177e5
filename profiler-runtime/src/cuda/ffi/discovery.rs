//! Notices a driver library that the program loads after its first measured call.
//!
//! Looking for a library that is not loaded searches many folders, so both ways are limited: a call site looks when it
//! decides, at most once in a millisecond; and call sites and the collector look a few times in the first seconds, at
//! growing intervals.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::library::{DiscoveryReason, find, may_be_found};
use crate::clock::clock;
use crate::switch::with_control;

/// How often [`poll_discovery`] looks in all.
const POLLS: u32 = 11;

static POLLED: AtomicU32 = AtomicU32::new(0);
/// When [`poll_discovery`] looks next, in ticks since the origin.
static NEXT_POLL: AtomicU64 = AtomicU64::new(0);
static IS_POLLING: AtomicBool = AtomicBool::new(true);

/// Looks for a loaded library when a call site decides, unless that was done within the last millisecond.
#[cold]
pub(crate) fn scan_loaded() {
    const GAP_NS: f64 = 1e6;
    static LAST: AtomicU64 = AtomicU64::new(0);
    let (now, last) = (clock().since_origin(), LAST.load(Relaxed));
    if last == 0 || clock().nanoseconds(now.saturating_sub(last) as f64) > GAP_NS {
        LAST.store(now.max(1), Relaxed);
        find(DiscoveryReason::MeasuredCall);
    }
}

/// Returns `true` while measured calls must call [`poll_discovery`].
pub(crate) fn is_discovering() -> bool {
    IS_POLLING.load(Relaxed) && may_be_found()
}

/// Looks for a loaded library if it is time to: 1, 2, 4, 8… ms after the time before, [`POLLS`] times.
#[cold]
pub(crate) fn poll_discovery() {
    let now = clock().since_origin();
    let due = NEXT_POLL.load(Relaxed);
    if now < due {
        return;
    }
    let polls = POLLED.load(Relaxed);
    let next = now + clock().in_ticks(Duration::from_millis(1 << polls.min(20)));
    // Of several threads that find it due, the one whose exchange succeeds looks.
    if NEXT_POLL
        .compare_exchange(due, next, Relaxed, Relaxed)
        .is_err()
    {
        return;
    }
    POLLED.store(polls + 1, Relaxed);
    if find(DiscoveryReason::MeasuredCall).is_none()
        && polls + 1 >= POLLS
        && IS_POLLING.swap(false, Relaxed)
    {
        // Call sites decide again, and stop polling.
        with_control(crate::switch::Control::new_generation);
    }
}

/// Calls [`poll_discovery`] while it may find a library.
pub(crate) fn poll_discovery_if_active() {
    if is_discovering() {
        poll_discovery();
    }
}
