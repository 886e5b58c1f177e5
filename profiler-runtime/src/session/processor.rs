//! Which threads were on a processor while a window was open: read by the thread that sorts scopes into windows, in its rounds.
//! A measured thread does nothing for it. It shows whether one worked or waited while a device was idle.

use std::collections::BTreeMap;
use std::time::Duration;

use profiler_host::process::thread_times::ThreadTimes;

use super::record::ThreadInfo;
use crate::clock::{clock, now};

/// The shortest time between two rounds of samples.
const INTERVAL: Duration = Duration::from_millis(5);
/// And for each thread: 6 µs of processor time at most once in this.
const INTERVAL_OF_THREAD: Duration = Duration::from_millis(1);
/// The most threads that are known: those that were first to record a scope.
const MAX_THREADS: usize = 64;
/// The most samples of a window: 1.5 MiB. When there are more, every second one is left out from then on.
const MAX_SAMPLES: usize = 1 << 16;

/// What was known of a thread at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessorSample {
    /// In ticks.
    pub(crate) at: u64,
    /// Since the thread began.
    pub(crate) times: ThreadTimes,
}

/// The threads that are looked at.
#[derive(Debug, Default)]
pub(super) struct Processors {
    /// Their system's ids, by the profiler's numbers of them.
    threads: BTreeMap<u64, u64>,
    last: u64,
}

impl Processors {
    /// Notes a thread that records scopes.
    pub(super) fn note(&mut self, thread: &ThreadInfo) {
        if self.threads.len() < MAX_THREADS {
            self.threads.insert(thread.number, thread.id);
        }
    }

    /// Returns a sample of each thread, by its number; none if the last ones are recent. Threads that have ended are forgotten.
    pub(super) fn sample(&mut self) -> Vec<(u64, ProcessorSample)> {
        let mut samples = Vec::new();
        let begun = now();
        let threads = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        let interval = INTERVAL.max(INTERVAL_OF_THREAD.saturating_mul(threads));
        if begun.saturating_sub(self.last) < clock().in_ticks(interval) {
            return samples;
        }
        self.last = begun;
        self.threads.retain(|number, id| {
            let at = now();
            let times = ThreadTimes::of(*id);
            samples.extend(times.map(|times| (*number, ProcessorSample { at, times })));
            times.is_some()
        });
        samples
    }
}

/// The samples of a window, by the profiler's numbers of the threads.
#[derive(Debug, Default)]
pub(super) struct ProcessorSamples {
    threads: BTreeMap<u64, Vec<ProcessorSample>>,
    count: usize,
    /// The bits that are zero in the numbers of the rounds that are kept.
    mask: u32,
    rounds: u32,
}

impl ProcessorSamples {
    /// Adds the samples of a round.
    pub(super) fn add(&mut self, samples: &[(u64, ProcessorSample)]) {
        self.rounds = self.rounds.wrapping_add(1);
        if self.rounds & self.mask != 0 {
            return;
        }
        for (thread, sample) in samples {
            let known = self.threads.entry(*thread).or_default();
            // If memory is short, the time from the last sample to the next one is one.
            if known.try_reserve(1).is_ok() {
                known.push(*sample);
                self.count += 1;
            }
        }
        if self.count > MAX_SAMPLES {
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.count = 0;
        for samples in self.threads.values_mut() {
            let mut is_kept = false;
            samples.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.count += samples.len();
        }
        self.mask = self.mask << 1 | 1;
    }

    /// Takes the samples of a thread from a window that was open so long, in the order of time.
    pub(super) fn take(
        &mut self,
        thread: u64,
        (opened, closed): (u64, u64),
    ) -> Vec<ProcessorSample> {
        let mut samples = self.threads.remove(&thread).unwrap_or_default();
        place_waits(&mut samples);
        samples.retain(|sample| (opened..=closed).contains(&sample.at));
        samples
    }
}

/// Moves the time for which a thread was ready to where it was. The system adds it when the thread gets a processor: what does
/// not fit between the sample before and the one after was earlier.
fn place_waits(samples: &mut [ProcessorSample]) {
    for place in (1..samples.len()).rev() {
        let Some([before, after]) = samples.get_mut(place - 1..=place) else {
            continue;
        };
        let ran = after
            .times
            .running_ns
            .saturating_sub(before.times.running_ns);
        let all = clock().nanoseconds(after.at.saturating_sub(before.at) as f64);
        let all = Duration::try_from_secs_f64(all / 1e9).unwrap_or_default();
        let room = u64::try_from(all.as_nanos())
            .unwrap_or(u64::MAX)
            .saturating_sub(ran);
        let least = after.times.ready_ns.saturating_sub(room);
        before.times.ready_ns = before.times.ready_ns.max(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64) -> ProcessorSample {
        ProcessorSample {
            at,
            times: ThreadTimes::default(),
        }
    }

    #[test]
    fn a_window_has_the_samples_of_its_time() {
        let mut samples = ProcessorSamples::default();
        for at in 0..10 {
            samples.add(&[(3, sample(at)), (4, sample(at))]);
        }
        let taken = samples.take(3, (2, 5));
        let times: Vec<u64> = taken.iter().map(|sample| sample.at).collect();
        assert_eq!(times, [2, 3, 4, 5]);
        assert_eq!(samples.take(5, (0, 9)), []);
    }

    #[test]
    fn samples_of_a_long_window_become_fewer_at_even_distances() {
        let mut samples = ProcessorSamples::default();
        let rounds = 5 * MAX_SAMPLES as u64;
        for at in 0..rounds {
            samples.add(&[(3, sample(at))]);
            assert!(samples.count <= MAX_SAMPLES);
        }
        let taken = samples.take(3, (0, rounds));
        assert!(taken.len() > MAX_SAMPLES / 4, "{}", taken.len());
        let distance = |pair: &[ProcessorSample]| pair[1].at - pair[0].at;
        let longest = taken.windows(2).map(distance).max();
        assert!(longest <= Some(16), "{longest:?}");
        let last = taken.last().map_or(0, |sample| sample.at);
        assert!(rounds - last <= 8, "{last}");
    }

    #[test]
    fn a_wait_for_a_processor_is_placed_before_the_thread_got_it() {
        let ms = |ms| clock().in_ticks(Duration::from_millis(ms));
        // From 15 to 40 ms, it was ready. Then it ran.
        let known = [
            (0, 0, 0),
            (10, 10, 0),
            (20, 15, 0),
            (30, 15, 0),
            (50, 25, 25),
        ];
        let known = known.map(|(at, running, ready)| ProcessorSample {
            at: ms(at),
            times: ThreadTimes {
                running_ns: running * 1_000_000,
                ready_ns: ready * 1_000_000,
            },
        });
        let mut samples = ProcessorSamples::default();
        for sample in known {
            samples.add(&[(3, sample)]);
        }
        let taken = samples.take(3, (0, ms(50)));
        let ready = taken
            .iter()
            .map(|sample| sample.times.ready_ns as f64 / 1e6);
        let expected = [0.0, 0.0, 5.0, 15.0, 25.0];
        for (ready, expected) in ready.zip(expected) {
            // A tick need not be a whole number of nanoseconds.
            assert!((ready - expected).abs() < 0.001, "{ready} {expected}");
        }
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn threads_are_sampled_until_they_end_and_no_more_than_are_allowed() {
        use profiler_host::process::thread::{number, system_id};

        let this = || ThreadInfo {
            id: system_id().expect("it is Linux"),
            number: number(),
            name: None,
        };
        let mut processors = Processors::default();
        processors.note(&this());
        let ended = std::thread::spawn(this).join().expect("it does not panic");
        // A thread has ended some time after it was joined.
        while ThreadTimes::of(ended.id).is_some() {}
        processors.note(&ended);
        let sampled = processors.sample();
        let threads: Vec<u64> = sampled.iter().map(|(thread, _)| *thread).collect();
        assert_eq!(threads, [number()]);
        assert_eq!(processors.sample(), [], "the last ones are recent");
        assert_eq!(processors.threads.len(), 1);
        for number in 0..2 * MAX_THREADS as u64 {
            processors.note(&ThreadInfo { number, ..this() });
        }
        assert_eq!(processors.threads.len(), MAX_THREADS);
    }
}
