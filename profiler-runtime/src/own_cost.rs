//! The cost of the profiler itself, measured while it runs.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use profiler_host::process::thread;

use crate::clock::clock;

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

/// The sampled GPU scopes by their cost in ticks: four buckets for each power of two.
static SAMPLES: [AtomicU32; BUCKETS] = [const { AtomicU32::new(0) }; BUCKETS];
const BUCKETS: usize = 4 * u64::BITS as usize;
/// The least cost of a sampled GPU scope, in ticks; `u64::MAX` before the first sample.
static LEAST: AtomicU64 = AtomicU64::new(u64::MAX);

/// The GPU times that calls have beyond one for each.
static MORE_GPU_TIMES: AtomicU64 = AtomicU64::new(0);

/// Notes that a call has this many GPU times beyond one.
pub(crate) fn note_more_gpu_times(count: u64) {
    MORE_GPU_TIMES.fetch_add(count, Relaxed);
}

/// Returns how many GPU times calls have beyond one for each.
pub(crate) fn more_gpu_times() -> u64 {
    MORE_GPU_TIMES.load(Relaxed)
}

/// Returns the bucket of a cost: the position of its highest bit and the two bits below.
const fn bucket_of(ticks: u64) -> usize {
    // Zero has no highest bit.
    let ticks = if ticks == 0 { 1 } else { ticks };
    let exponent = ticks.ilog2();
    let below = if exponent < 2 {
        ticks << (2 - exponent)
    } else {
        ticks >> (exponent - 2)
    };
    4 * exponent as usize + (below & 3) as usize
}

/// Returns the middle of a bucket, in ticks.
fn middle_of(bucket: usize) -> f64 {
    let power = 2_f64.powi(i32::try_from(bucket / 4).unwrap_or(0));
    power * (1.0 + ((bucket % 4) as f64 + 0.5) / 4.0)
}

/// Records the cost of both ends of one GPU scope.
pub(crate) fn note_sample(ticks: u64) {
    if let Some(samples) = SAMPLES.get(bucket_of(ticks)) {
        samples.fetch_add(1, Relaxed);
    }
    LEAST.fetch_min(ticks, Relaxed);
}

/// Returns the least cost of both ends of a GPU scope, in nanoseconds; zero before the first sample.
pub(crate) fn least_sample() -> f64 {
    match LEAST.load(Relaxed) {
        u64::MAX => 0.0,
        ticks => clock().nanoseconds(ticks as f64),
    }
}

/// Returns the median cost of a GPU scope on its thread, in nanoseconds, to within an eighth; zero before the first
/// sample.
///
/// Not the mean: a thread that is preempted between the two readings of one sample runs something else meanwhile, and a
/// single time slice is as long as a thousand scopes.
pub(crate) fn median_sample() -> f64 {
    let samples = SAMPLES.each_ref().map(|samples| samples.load(Relaxed));
    median(&samples).map_or(0.0, |ticks| clock().nanoseconds(ticks))
}

fn median(samples: &[u32]) -> Option<f64> {
    let all: u64 = samples.iter().map(|samples| u64::from(*samples)).sum();
    let mut before = 0;
    let bucket = samples.iter().position(|samples| {
        before += u64::from(*samples);
        2 * before > all
    })?;
    Some(middle_of(bucket))
}

/// Returns the processor time of background threads, in nanoseconds.
pub(crate) fn background_ns() -> u64 {
    BACKGROUND.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_bucket_is_close_to_each_cost_in_it() {
        for ticks in [4, 5, 6, 7, 8, 1_000, 12_345, u64::MAX / 3, u64::MAX] {
            let error = middle_of(bucket_of(ticks)) / ticks as f64 - 1.0;
            assert!(error.abs() <= 0.126, "{ticks}: {error}");
        }
        assert!(bucket_of(0) == 0 && bucket_of(u64::MAX) == BUCKETS - 1);
    }

    #[test]
    fn one_preempted_sample_does_not_change_the_median() {
        let mut samples = [0_u32; BUCKETS];
        assert_eq!(median(&samples), None);
        samples[bucket_of(5_000)] = 20;
        let usual = median(&samples);
        samples[bucket_of(50_000_000)] = 1;
        assert_eq!(median(&samples), usual);
        assert!(usual.is_some_and(|usual| (usual / 5_000.0 - 1.0).abs() < 0.126));
    }
}
