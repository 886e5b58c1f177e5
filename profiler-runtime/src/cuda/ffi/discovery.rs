//! Notices a driver library that the program loads after its first measured call.
//!
//! Looking for a library that is not loaded searches many folders. So a measured call looks only when its call site decides,
//! at most once in a millisecond. A thread looks besides, at growing intervals, and ends after a minute. Call sites need not
//! know of it: who finds the driver starts a new generation of the switch.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use profiler_host::background::Background;

use super::library::{DiscoveryReason, find, may_be_found};
use crate::clock::clock;
use crate::own_cost;

static THREAD: Background = Background::new("profiler-search", search, || {});

/// How often the thread looks: after 1 ms, and each time after twice as long as before. It takes 65 seconds in all.
const LOOKS: u32 = 16;

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

/// Starts the thread that looks for a library which the program loads later, if there may be one.
pub(crate) fn begin_search() {
    // Other builds find nothing, and WebAssembly has no threads.
    let can_find = cfg!(all(feature = "cuda", not(target_family = "wasm")));
    if can_find && may_be_found() {
        THREAD.ensure_started(
            "a CUDA driver that the program loads after its first measured call is only noticed when a call site is new",
        );
    }
}

fn search() {
    for look in 0..LOOKS {
        thread::sleep(Duration::from_millis(1 << look));
        // A setting may have turned the search off.
        if !may_be_found() || find(DiscoveryReason::MeasuredCall).is_some() {
            return;
        }
        own_cost::note_background();
    }
}
