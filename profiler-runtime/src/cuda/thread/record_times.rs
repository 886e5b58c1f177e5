//! How long the driver takes to record an event.
//!
//! A record does not wait for the device's work, but it needs a slot in the driver's launch queue. If the queue is
//! full, the record waits until the device has taken something out, as the program's own launches do. Only the duration
//! of the call reveals that. It is measured in one scope of 64, in which the profiler's own cost is sampled too.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use profiler_report::RecordTimes;

use super::scope::CostSampling;
use crate::clock::{clock, now};

/// A record that takes longer, in nanoseconds, is counted as long. It usually takes one to three microseconds.
const LONG_NS: f64 = 100_000.0;

static TIMED: AtomicU64 = AtomicU64::new(0);
static LONG: AtomicU64 = AtomicU64::new(0);
/// The longest record, in ticks.
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// Returns the time before a record, for [`end`], if the scope is sampled.
// Two functions, and not one that takes the record as a closure, which the compiler does not always inline.
#[inline(always)]
pub(super) fn begin(sampling: CostSampling) -> Option<u64> {
    (sampling == CostSampling::On).then(now)
}

/// Measures the duration of a record that began at a time from [`begin`].
#[inline(always)]
pub(crate) fn end(begun: Option<u64>) {
    if let Some(begun) = begun {
        add(now().saturating_sub(begun));
    }
}

#[cold]
fn add(ticks: u64) {
    TIMED.fetch_add(1, Relaxed);
    LONGEST.fetch_max(ticks, Relaxed);
    if clock().nanoseconds(ticks as f64) > LONG_NS {
        LONG.fetch_add(1, Relaxed);
    }
}

/// Returns the durations so far.
pub(crate) fn times() -> RecordTimes {
    RecordTimes {
        timed: TIMED.load(Relaxed),
        long: LONG.load(Relaxed),
        longest_ns: clock().nanoseconds(LONGEST.load(Relaxed) as f64),
        non_exhaustive: (),
    }
}
