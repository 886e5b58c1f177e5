//! The cost of the profiler itself, measured while it runs.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use profiler_host::process::thread;
use profiler_host::sync::ring::ring;

use crate::clock::{clock, now};

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

/// What each end of a scope or a poll takes on the slow path, without its GPU part: of one in [`SLOW_EVERY`].
pub(crate) static SLOW_OPENINGS: Samples = Samples::new();
pub(crate) static SLOW_CLOSINGS: Samples = Samples::new();
/// What both ends of a GPU scope take, including the driver's part.
pub(crate) static GPU_SCOPES: Samples = Samples::new();

/// Costs that were sampled, in ticks: four buckets for each power of two.
pub(crate) struct Samples {
    buckets: [AtomicU32; BUCKETS],
    /// `u64::MAX` before the first sample.
    least: AtomicU64,
}

/// One scope or poll in this many is sampled on the slow path. A prime, so that a loop of a few functions is not always sampled
/// in the same one.
pub(crate) const SLOW_EVERY: u64 = 61;

/// Returns about how many scopes and polls were opened on the slow path, and what both their ends took in nanoseconds: with a
/// thread time, with callers, and so on.
pub(crate) fn slow_calls() -> (u64, f64) {
    let (opened, opening) = SLOW_OPENINGS.count_and_sum();
    let (_, closing) = SLOW_CLOSINGS.count_and_sum();
    let ns = clock().nanoseconds(opening + closing) * SLOW_EVERY as f64;
    (opened * SLOW_EVERY, ns)
}

const BUCKETS: usize = 4 * u64::BITS as usize;

/// A sample of more than this many times the median was preempted, or paid for something that later ones do not.
const OUTLIER: f64 = 8.0;

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

impl Samples {
    const fn new() -> Self {
        Self {
            buckets: [const { AtomicU32::new(0) }; BUCKETS],
            least: AtomicU64::new(u64::MAX),
        }
    }

    /// Adds a cost.
    pub(crate) fn note(&self, ticks: u64) {
        if let Some(samples) = self.buckets.get(bucket_of(ticks)) {
            samples.fetch_add(1, Relaxed);
        }
        self.least.fetch_min(ticks, Relaxed);
    }

    /// Returns the least cost in nanoseconds; zero before the first sample.
    pub(crate) fn least(&self) -> f64 {
        match self.least.load(Relaxed) {
            u64::MAX => 0.0,
            ticks => clock().nanoseconds(ticks as f64),
        }
    }

    /// Returns the median cost in nanoseconds, to within an eighth; zero before the first sample.
    ///
    /// Not the mean: a thread that is preempted between the two readings of one sample runs something else meanwhile, and a
    /// single time slice is as long as a thousand scopes.
    pub(crate) fn median(&self) -> f64 {
        median(&self.read()).map_or(0.0, |ticks| clock().nanoseconds(ticks))
    }

    /// Returns how many samples there are, and the sum of their costs in ticks. Outliers count as the mean of the others.
    fn count_and_sum(&self) -> (u64, f64) {
        let samples = self.read();
        let count = count(&samples);
        (count, mean(&samples).unwrap_or(0.0) * count as f64)
    }

    fn read(&self) -> [u32; BUCKETS] {
        self.buckets.each_ref().map(|samples| samples.load(Relaxed))
    }
}

fn count(samples: &[u32]) -> u64 {
    samples.iter().map(|samples| u64::from(*samples)).sum()
}

fn median(samples: &[u32]) -> Option<f64> {
    let all = count(samples);
    let mut before = 0;
    let bucket = samples.iter().position(|samples| {
        before += u64::from(*samples);
        2 * before > all
    })?;
    Some(middle_of(bucket))
}

/// Returns the mean without outliers; costs of several kinds may be among the samples.
fn mean(samples: &[u32]) -> Option<f64> {
    let longest = OUTLIER * median(samples)?;
    let usual = samples
        .iter()
        .enumerate()
        .map(|(bucket, samples)| (middle_of(bucket), f64::from(*samples)))
        .filter(|(ticks, _)| *ticks <= longest);
    let (sum, count) = usual.fold((0.0, 0.0), |(sum, count), (ticks, samples)| {
        (sum + ticks * samples, count + samples)
    });
    Some(sum / count)
}

/// Returns what it takes to push a record to the ring of a thread, in nanoseconds; zero without memory.
pub(crate) fn cost_of_push<T>(make: impl Fn() -> T) -> f64 {
    const RECORDS: u32 = 1024;
    let Some((mut producer, mut consumer)) = ring(RECORDS as usize) else {
        return 0.0;
    };
    // The first round touches the memory.
    let rounds = [(); 4].map(|()| {
        let start = now();
        for _ in 0..RECORDS {
            let _ = black_box(&mut producer).push(make());
        }
        let ticks = now().saturating_sub(start);
        while consumer.pop().is_some() {}
        ticks
    });
    let best = rounds.into_iter().min().unwrap_or_default();
    clock().nanoseconds(best as f64) / f64::from(RECORDS)
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
        assert_eq!((median(&samples), mean(&samples)), (None, None));
        samples[bucket_of(5_000)] = 20;
        let usual = (median(&samples), mean(&samples));
        samples[bucket_of(50_000_000)] = 1;
        assert_eq!((median(&samples), mean(&samples)), usual);
        let is_close =
            |cost: Option<f64>| cost.is_some_and(|cost| (cost / 5_000.0 - 1.0).abs() < 0.126);
        assert!(is_close(usual.0) && is_close(usual.1));
    }

    #[test]
    fn the_mean_is_of_costs_of_all_kinds() {
        let mut samples = [0_u32; BUCKETS];
        samples[bucket_of(1_000)] = 60;
        samples[bucket_of(4_000)] = 40;
        let mean = mean(&samples).expect("samples");
        assert!((mean / 2_200.0 - 1.0).abs() < 0.126, "{mean}");
    }
}
