//! How long the driver takes to put an event into a stream.
//!
//! That does not wait for work of the device, but it takes a place in the driver's launch queue; where that is full, it
//! waits until the device has taken something out of it, as the program's own launches do. Nothing but its duration
//! tells, so it is timed in those scopes whose cost is sampled anyway, and in no other.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock::{clock, now};

/// A record that takes longer than this is counted: it usually takes one to three microseconds.
const LONG_NS: f64 = 100_000.0;

static TIMED: AtomicU64 = AtomicU64::new(0);
static LONG: AtomicU64 = AtomicU64::new(0);
/// In ticks.
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// Records of events that were timed: those of one GPU scope in 64 on each thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RecordTimes {
    /// How many were timed.
    pub timed: u64,
    /// How many of these took longer than 100 µs. Either the driver's launch queue was full, and the record waited for
    /// a place in it as the program's launches do; or the system took the thread off its processor meanwhile.
    pub long: u64,
    /// What the longest took, in nanoseconds.
    pub longest_ns: f64,
}

/// Runs a record, and notes how long it took where that is to be found out.
#[inline(always)]
pub(crate) fn timed<T>(is_sampled: bool, record: impl FnOnce() -> T) -> T {
    let begun = is_sampled.then(now);
    let recorded = record();
    if let Some(begun) = begun {
        note(now().saturating_sub(begun));
    }
    recorded
}

#[cold]
fn note(ticks: u64) {
    TIMED.fetch_add(1, Relaxed);
    LONGEST.fetch_max(ticks, Relaxed);
    if clock().nanoseconds(ticks as f64) > LONG_NS {
        LONG.fetch_add(1, Relaxed);
    }
}

pub(crate) fn times() -> RecordTimes {
    RecordTimes {
        timed: TIMED.load(Relaxed),
        long: LONG.load(Relaxed),
        longest_ns: clock().nanoseconds(LONGEST.load(Relaxed) as f64),
    }
}
