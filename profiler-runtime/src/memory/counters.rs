//! Counts of allocated memory, per thread and of the process.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use profiler_host::sync::ReentrancyGuard;

/// The counts of a thread, in bytes.
pub(super) struct ThreadCounts {
    /// Bytes allocated minus bytes freed.
    pub(super) in_use: Cell<i64>,
    pub(super) allocated: Cell<u64>,
    /// The maximum of `in_use` since the innermost recorded scope opened.
    pub(super) peak: Cell<i64>,
}

thread_local! {
    // It has no destructor, so it can be used until the thread ends.
    static COUNTS: ThreadCounts = const {
        ThreadCounts {
            in_use: Cell::new(0),
            allocated: Cell::new(0),
            peak: Cell::new(0),
        }
    };
}

/// `true` while a session profiles memory.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Returns `true` while a session profiles memory.
#[inline]
fn is_wanted() -> bool {
    WANTED.load(Relaxed)
}

/// `true` once the program's allocator has counted something while a session profiled memory.
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// Starts or stops counting.
pub(crate) fn set_wanted(wanted: bool) {
    if wanted && !is_wanted() {
        reset_total();
    }
    WANTED.store(wanted, Relaxed);
    if wanted {
        // For `is_installed`, in case that nothing else allocates. Not optimised away.
        drop(std::hint::black_box(Box::new(0_u8)));
    }
}

/// Returns `true` if the program's global allocator counts, as far as sessions have profiled memory.
pub(crate) fn is_installed() -> bool {
    IS_INSTALLED.load(Relaxed)
}

/// Bytes allocated minus bytes freed on all threads since the counting began.
static TOTAL: AtomicI64 = AtomicI64::new(0);
/// The minimum of `TOTAL`; negative if older blocks were freed.
static MINIMUM: AtomicI64 = AtomicI64::new(0);

/// Resets the total: it lacks the blocks that were freed while nothing was counted.
fn reset_total() {
    TOTAL.store(0, Relaxed);
    MINIMUM.store(0, Relaxed);
}

/// Returns the bytes in use, above the minimum since the counting began.
pub(super) fn total() -> u64 {
    let total = TOTAL.load(Relaxed) - MINIMUM.load(Relaxed);
    u64::try_from(total).unwrap_or_default()
}

/// Calls `f` with the counts of the calling thread.
pub(super) fn with_counts<R>(f: impl FnOnce(&ThreadCounts) -> R) -> Option<R> {
    COUNTS.try_with(f).ok()
}

/// Counts allocated and freed bytes while a session profiles memory.
pub(super) fn count(allocated: usize, freed: usize) {
    // Do not attribute the profiler's own allocations to a scope.
    if !is_wanted() {
        return;
    }
    if !IS_INSTALLED.load(Relaxed) {
        IS_INSTALLED.store(true, Relaxed);
    }
    if ReentrancyGuard::is_entered() {
        return;
    }
    add(allocated, freed);
}

/// Adds to the counts of the thread and of the process.
pub(super) fn add(allocated: usize, freed: usize) {
    // These casts do not overflow: an allocation is at most half of the address space.
    let growth = allocated.cast_signed() as i64 - freed.cast_signed() as i64;
    let total = TOTAL.fetch_add(growth, Relaxed) + growth;
    if total < MINIMUM.load(Relaxed) {
        MINIMUM.fetch_min(total, Relaxed);
    }
    let _ = with_counts(|counts| {
        counts
            .allocated
            .set(counts.allocated.get() + allocated as u64);
        counts.in_use.set(counts.in_use.get() + growth);
        counts.peak.set(counts.peak.get().max(counts.in_use.get()));
    });
}
