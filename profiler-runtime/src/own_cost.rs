//! What the profiler itself costs, measured while it runs.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock::clock;

/// The processor time of the profiler's own threads, in nanoseconds.
static BACKGROUND: AtomicU64 = AtomicU64::new(0);

/// Notes what the calling thread, one of the profiler's own, has used so far.
pub(crate) fn note_background() {
    thread_local! {
        static NOTED: Cell<u64> = const { Cell::new(0) };
    }
    let used = thread_time();
    let before = NOTED.with(|noted| noted.replace(used));
    BACKGROUND.fetch_add(used.saturating_sub(before), Relaxed);
}

#[cfg(unix)]
fn thread_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one struct, which lives for the call.
    let refused = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } != 0;
    if refused {
        return 0;
    }
    #[allow(clippy::cast_sign_loss, reason = "processor time is never below zero")]
    let (seconds, nanoseconds) = (time.tv_sec as u64, time.tv_nsec as u64);
    seconds * 1_000_000_000 + nanoseconds
}

#[cfg(not(unix))]
fn thread_time() -> u64 {
    0
}

/// The time that was found in some GPU scopes, in ticks, and how many they were.
static SAMPLED: AtomicU64 = AtomicU64::new(0);
static SAMPLES: AtomicU64 = AtomicU64::new(0);
static LEAST: AtomicU64 = AtomicU64::new(u64::MAX);

/// Notes what both ends of one GPU scope took.
pub(crate) fn note_sample(ticks: u64) {
    SAMPLED.fetch_add(ticks, Relaxed);
    SAMPLES.fetch_add(1, Relaxed);
    LEAST.fetch_min(ticks, Relaxed);
}

/// What both ends of a GPU scope take where nothing interferes, in nanoseconds; zero as long as that was not
/// found out.
pub(crate) fn least_sample() -> f64 {
    match LEAST.load(Relaxed) {
        u64::MAX => 0.0,
        ticks => clock().nanoseconds(ticks as f64),
    }
}

/// Returns the mean cost of a GPU scope on its thread, in nanoseconds; zero before one was timed.
pub(crate) fn mean_sample() -> f64 {
    let samples = SAMPLES.load(Relaxed).max(1) as f64;
    clock().nanoseconds(SAMPLED.load(Relaxed) as f64) / samples
}

/// Returns the processor time of the profiler's own threads, in nanoseconds.
pub(crate) fn background_ns() -> u64 {
    BACKGROUND.load(Relaxed)
}
