//! The cost of the profiler itself, measured while it runs.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock::clock;
use crate::process::thread;

/// The processor time of background threads, in nanoseconds.
static BACKGROUND: AtomicU64 = AtomicU64::new(0);

/// Records the processor time that the calling background thread has used so far.
pub(crate) fn note_background() {
    thread_local! {
        static NOTED: Cell<u64> = const { Cell::new(0) };
    }
    let used = thread::processor_time();
    let before = NOTED.with(|noted| noted.replace(used));
    BACKGROUND.fetch_add(used.saturating_sub(before), Relaxed);
}

/// The total cost of the sampled GPU scopes, in ticks.
static SAMPLED: AtomicU64 = AtomicU64::new(0);
/// The number of sampled GPU scopes.
static SAMPLES: AtomicU64 = AtomicU64::new(0);
/// The least cost of a sampled GPU scope, in ticks; `u64::MAX` before the first sample.
static LEAST: AtomicU64 = AtomicU64::new(u64::MAX);

/// Records the cost of both ends of one GPU scope.
pub(crate) fn note_sample(ticks: u64) {
    SAMPLED.fetch_add(ticks, Relaxed);
    SAMPLES.fetch_add(1, Relaxed);
    LEAST.fetch_min(ticks, Relaxed);
}

/// Returns the least cost of both ends of a GPU scope, in nanoseconds; zero before the first sample.
pub(crate) fn least_sample() -> f64 {
    match LEAST.load(Relaxed) {
        u64::MAX => 0.0,
        ticks => clock().nanoseconds(ticks as f64),
    }
}

/// Returns the mean cost of a GPU scope on its thread, in nanoseconds; zero before the first sample.
pub(crate) fn mean_sample() -> f64 {
    let samples = SAMPLES.load(Relaxed).max(1) as f64;
    clock().nanoseconds(SAMPLED.load(Relaxed) as f64) / samples
}

/// Returns the processor time of background threads, in nanoseconds.
pub(crate) fn background_ns() -> u64 {
    BACKGROUND.load(Relaxed)
}
