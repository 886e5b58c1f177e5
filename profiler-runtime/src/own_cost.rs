//! What the profiler itself costs, measured while it runs.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock::{clock, now};
use crate::process::RaceCell;
use crate::scope::Probe;
use crate::summary::Row;

/// What the profiler itself costs, as shares of the wall time since it was first used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OwnCost {
    /// What measured threads spent on measuring, added up over them: an estimate, from the cost of a call
    /// (timed once) and of a GPU scope (timed once in 64 calls, with the driver's part in it).
    pub measured_threads: f64,
    /// The processor time of the profiler's own threads, with the loggers and handlers of traces that run on them.
    pub background: f64,
}

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

/// What an ordinary call costs, in nanoseconds: found out once, on a name that nobody sees.
fn cost_of_call() -> f64 {
    static COST: RaceCell<f64> = RaceCell::new();
    *COST.get_or_init(|| {
        const CALLS: u32 = 512;
        // The first round finds the code and the cell.
        let rounds = [(); 4].map(|()| {
            let start = now();
            Probe::run(CALLS);
            now().saturating_sub(start)
        });
        let best = rounds.into_iter().min().unwrap_or_default();
        clock().nanoseconds(best as f64) / f64::from(CALLS)
    })
}

pub(crate) fn own_cost(rows: &[Row], wall_ns: f64) -> OwnCost {
    let calls: u64 = rows.iter().map(|row| row.calls).sum();
    let on_gpu: u64 = rows
        .iter()
        .map(|row| row.cuda.as_ref().map_or(0, |cuda| cuda.calls))
        .sum();
    let samples = SAMPLES.load(Relaxed).max(1) as f64;
    let gpu_call = clock().nanoseconds(SAMPLED.load(Relaxed) as f64) / samples;
    let measured = calls as f64 * cost_of_call() + on_gpu as f64 * gpu_call;
    let background = BACKGROUND.load(Relaxed);
    OwnCost {
        measured_threads: measured / wall_ns.max(1.0),
        background: background as f64 / wall_ns.max(1.0),
    }
}
