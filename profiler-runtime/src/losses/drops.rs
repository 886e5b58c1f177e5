//! Counts of what was not measured or did not reach its logger.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use profiler_host::diagnostics::warn_once;
use profiler_report::DropReason;

/// Dropped entries by reason. A measured thread counts a full ring in its cell instead (`StatCell::ring_full`).
static DROPPED: [AtomicU64; DropReason::ALL.len()] =
    [const { AtomicU64::new(0) }; DropReason::ALL.len()];

/// `true` once a measured thread has counted a full ring in its cell.
static HAD_FULL_RING: AtomicBool = AtomicBool::new(false);

/// Notes that a thread has counted a full ring in its cell, for [`warn_of_drops`].
pub(crate) fn note_full_ring() {
    // Load first: a store would take the cache line away from other threads whose rings are full.
    if !HAD_FULL_RING.load(Relaxed) {
        HAD_FULL_RING.store(true, Relaxed);
    }
}

/// Warns of the first dropped log entry of each reason whose cause has no warning of its own.
///
/// Background threads call this, and the end of the program: measured threads only count, since a warning may wait for
/// standard error, and may reach a `tracing` subscriber, which is user code.
pub(crate) fn warn_of_drops() {
    static WARNED: [AtomicBool; DropReason::ALL.len()] =
        [const { AtomicBool::new(false) }; DropReason::ALL.len()];

    for reason in DropReason::ALL {
        let is_full_ring = reason == DropReason::RingFull && HAD_FULL_RING.load(Relaxed);
        let has_occurred = is_full_ring || dropped(reason) > 0;
        let is_new = || !WARNED[reason as usize].swap(true, Relaxed);
        if has_occurred && !reason.has_own_warning() && is_new() {
            let (why, advice) = (reason.as_str(), reason.advice());
            warn_once(&format!(
                "log entries are dropped ({why}): {advice}; the summary counts them, and its times include their calls"
            ));
        }
    }
}

/// Counts dropped log entries.
pub(crate) fn count_dropped(reason: DropReason, entries: u64) {
    DROPPED[reason as usize].fetch_add(entries, Relaxed);
}

/// Returns how many log entries were dropped for `reason`, without those that the cells of threads count.
pub(crate) fn dropped(reason: DropReason) -> u64 {
    DROPPED[reason as usize].load(Relaxed)
}

/// Calls that are missing from the statistics because there was no memory for them.
static UNMEASURED: AtomicU64 = AtomicU64::new(0);

/// Counts a call that is missing from the statistics.
pub(crate) fn count_unmeasured() {
    UNMEASURED.fetch_add(1, Relaxed);
}

/// Measured calls, and spans, that were made while their thread was inside the profiler, and are in no row.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Counts a call that is not measured because its thread is inside the profiler.
#[cold]
pub(crate) fn count_refused() {
    REFUSED.fetch_add(1, Relaxed);
}

/// Returns how many calls were not measured because their threads were inside the profiler.
pub(crate) fn refused() -> u64 {
    REFUSED.load(Relaxed)
}

/// Returns how many calls are missing from the statistics.
pub(crate) fn unmeasured() -> u64 {
    UNMEASURED.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dropped_entry_is_warned_of_with_the_remedy() {
        let warnings = || -> Vec<String> {
            let notices = profiler_host::diagnostics::notices().into_iter();
            notices
                .filter(|notice| notice.starts_with("log entries are dropped (ring full)"))
                .collect()
        };
        note_full_ring();
        warn_of_drops();
        warn_of_drops();
        let expected = "log entries are dropped (ring full): raise PROFILER_RING, log fewer calls with `log_every`, or use \
                        a faster logger; the summary counts them, and its times include their calls";
        assert_eq!(warnings(), [expected]);
    }
}
