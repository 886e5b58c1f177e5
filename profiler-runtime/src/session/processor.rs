//! Which threads were on a processor while a window was open: read by the thread that sorts scopes into windows, in its rounds.
//! A measured thread does nothing for it. It shows whether one worked or waited while a device was idle.

use std::collections::BTreeMap;
use std::time::Duration;

use profiler_host::process::thread_times::ThreadTimes;

use super::record::ThreadInfo;
use crate::clock::{clock, now};

/// The shortest time between two rounds of samples.
const INTERVAL: Duration = Duration::from_millis(5);
/// One thread per so much time: reading it takes 6 µs of processor time.
const INTERVAL_OF_THREAD: Duration = Duration::from_millis(1);
/// What takes longer to read is not of one moment: the reading thread was interrupted.
const MOMENT: Duration = Duration::from_micros(100);
/// The most threads that are known: those that were first to record a scope.
const MAX_THREADS: usize = 64;
/// The most samples of a window: 1.5 MiB, and up to as much again that is kept free for more. When there are more, every second
/// one is left out from then on.
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
        self.sample_with(ThreadTimes::of)
    }

    /// Does it with a function that returns the times of a thread by its system's id.
    fn sample_with(
        &mut self,
        times_of: impl Fn(u64) -> Option<ThreadTimes>,
    ) -> Vec<(u64, ProcessorSample)> {
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
            let times = times_of(*id);
            let is_of_a_moment = now().saturating_sub(at) <= clock().in_ticks(MOMENT);
            let sample = times.filter(|_| is_of_a_moment);
            samples.extend(sample.map(|times| (*number, ProcessorSample { at, times })));
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
    /// Whether there are those of a round after the window closed.
    is_complete: bool,
}

impl ProcessorSamples {
    /// Adds the samples of a round to a window that closed at this time, if it did: up to the first ones after that, which tell
    /// for how long threads had waited when it closed.
    pub(super) fn add(&mut self, samples: &[(u64, ProcessorSample)], closed: Option<u64>) {
        if self.is_complete {
            return;
        }
        let first = samples.first().zip(closed);
        self.is_complete = first.is_some_and(|((_, first), closed)| first.at > closed);
        self.rounds = self.rounds.wrapping_add(1);
        if self.rounds & self.mask != 0 && !self.is_complete {
            return;
        }
        for (thread, sample) in samples {
            let known = self.threads.entry(*thread).or_default();
            // If memory is short, the spans on both sides of a missing sample become one.
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

    /// Takes the samples of a thread from a window that was open so long, in the order of time. Those without another one after
    /// which the thread ran are left out: it may have waited for a processor since then.
    pub(super) fn take(
        &mut self,
        thread: u64,
        (opened, closed): (u64, u64),
    ) -> Vec<ProcessorSample> {
        let mut samples = self.threads.remove(&thread).unwrap_or_default();
        place_waits(&mut samples);
        samples.truncate(settled(&samples));
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

/// Returns how many of the samples have all waits that there were before them. The system adds a wait when it has ended, so the
/// thread must have run since.
fn settled(samples: &[ProcessorSample]) -> usize {
    let running = |sample: &ProcessorSample| sample.times.running_ns;
    let last = samples.last().map_or(0, running);
    samples.partition_point(|sample| running(sample) < last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a thread that runs all the time.
    fn sample(at: u64) -> ProcessorSample {
        ProcessorSample {
            at,
            times: ThreadTimes {
                running_ns: at,
                ready_ns: 0,
            },
        }
    }

    /// Returns samples at times in milliseconds, for how long the thread had been running, and ready.
    fn in_ms(known: &[(u64, u64, u64)]) -> ProcessorSamples {
        let mut samples = ProcessorSamples::default();
        for (at, running, ready) in known {
            let times = ThreadTimes {
                running_ns: running * 1_000_000,
                ready_ns: ready * 1_000_000,
            };
            samples.add(&[(3, ProcessorSample { at: ms(*at), times })], None);
        }
        samples
    }

    fn ms(ms: u64) -> u64 {
        clock().in_ticks(Duration::from_millis(ms))
    }

    #[test]
    fn a_window_has_the_samples_of_its_time() {
        let mut samples = ProcessorSamples::default();
        for at in 0..10 {
            samples.add(&[(3, sample(at)), (4, sample(at))], None);
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
            samples.add(&[(3, sample(at))], None);
            assert!(samples.count <= MAX_SAMPLES);
        }
        samples.add(&[(3, sample(rounds))], Some(rounds - 1));
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
        // From 15 to 40 ms, it was ready. Then it ran.
        let mut samples = in_ms(&[
            (0, 0, 0),
            (10, 10, 0),
            (20, 15, 0),
            (30, 15, 0),
            (50, 25, 25),
            (60, 35, 25),
        ]);
        let taken = samples.take(3, (0, ms(50)));
        assert_eq!(taken.len(), 5);
        let ready = taken
            .iter()
            .map(|sample| sample.times.ready_ns as f64 / 1e6);
        let expected = [0.0, 0.0, 5.0, 15.0, 25.0];
        for (ready, expected) in ready.zip(expected) {
            // A tick need not be a whole number of nanoseconds.
            assert!((ready - expected).abs() < 0.001, "{ready} {expected}");
        }
    }

    #[test]
    fn the_time_since_a_thread_ran_last_is_not_known() {
        // From 15 ms to some time after the window closed, it was ready or slept: a wait that has not ended is in no sum.
        let known = [(0, 0, 0), (10, 10, 0), (20, 15, 0), (30, 15, 0)];
        let times_of = |mut samples: ProcessorSamples, closed| {
            let taken = samples.take(3, (0, closed));
            taken.iter().map(|sample| sample.at).collect::<Vec<_>>()
        };
        assert_eq!(times_of(in_ms(&known), ms(30)), [0, 10].map(ms));
        // It had slept, as the first sample after the window says: it has run since, and had not waited.
        let slept = [&known[..], &[(40, 20, 0)]].concat();
        let all = [0, 10, 20, 30].map(ms);
        assert_eq!(times_of(in_ms(&slept), ms(30)), all);
        assert!(times_of(in_ms(&[]), ms(30)).is_empty());
        assert!(times_of(in_ms(&known[..1]), ms(30)).is_empty());
    }

    #[test]
    fn a_closed_window_has_samples_up_to_the_first_round_after_its_time() {
        let mut samples = ProcessorSamples {
            // Half of the rounds are left out, but not that one.
            mask: 1,
            ..ProcessorSamples::default()
        };
        for at in 0..10 {
            samples.add(&[(3, sample(at)), (4, sample(at + 1))], Some(5));
        }
        let known = |thread| samples.threads[&thread].iter().map(|sample| sample.at);
        assert_eq!(known(3).collect::<Vec<_>>(), [1, 3, 5, 6]);
        assert_eq!(known(4).collect::<Vec<_>>(), [2, 4, 6, 7]);
    }

    #[test]
    fn a_sample_that_took_long_is_left_out_and_its_thread_is_not_forgotten() {
        let mut processors = Processors::default();
        for number in [1, 2] {
            let name = None;
            let id = number;
            processors.note(&ThreadInfo { id, number, name });
        }
        let sampled = processors.sample_with(|id| {
            std::thread::sleep(10 * MOMENT);
            (id == 1).then(ThreadTimes::default)
        });
        assert_eq!(sampled, []);
        assert!(processors.threads.keys().eq([&1]));
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
        // On a busy machine, the test may be interrupted in any sample.
        let mut sampled = Vec::new();
        while sampled.is_empty() {
            processors.last = 0;
            sampled = processors.sample();
            assert!(!processors.threads.is_empty(), "this thread lives");
        }
        let threads: Vec<u64> = sampled.iter().map(|(thread, _)| *thread).collect();
        assert_eq!(threads, [number()]);
        assert!(processors.last > 0);
        processors.last = u64::MAX;
        assert_eq!(processors.sample(), [], "the last ones are recent");
        assert_eq!(processors.threads.len(), 1);
        for number in 0..2 * MAX_THREADS as u64 {
            processors.note(&ThreadInfo { number, ..this() });
        }
        assert_eq!(processors.threads.len(), MAX_THREADS);
    }
}
