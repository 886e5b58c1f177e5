//! Batches: each round runs one batch of every variant, on all threads at once.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Samples;

/// A kind of call to time, or to count the instructions of.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The name in tables and scripts.
    pub name: &'static str,
    /// Makes this many calls.
    pub run: fn(u64),
    /// The variant whose calls are subtracted.
    pub base: &'static str,
    /// The calls that the profiler measures in one call: none in those of a base.
    pub measured: u32,
    /// The calls per batch, if not the number in the options.
    pub batch: Option<u64>,
    /// Runs before each batch, on one thread, outside of the timed part.
    pub before: fn(),
    /// Runs after each batch, on one thread, outside of the timed part.
    pub after: fn(),
}

impl Variant {
    /// Creates a base: a variant without the profiler.
    pub const fn base(name: &'static str, run: fn(u64)) -> Self {
        Self {
            name,
            run,
            base: name,
            measured: 0,
            batch: None,
            before: nothing,
            after: nothing,
        }
    }

    /// Creates a variant of calls that are measured once each, beyond the variant `base`.
    pub const fn beyond(base: &'static str, name: &'static str, run: fn(u64)) -> Self {
        Self {
            base,
            measured: 1,
            ..Self::base(name, run)
        }
    }

    /// Runs `before` and `after` around each batch.
    #[must_use]
    pub const fn between(mut self, before: fn(), after: fn()) -> Self {
        self.before = before;
        self.after = after;
        self
    }

    /// Uses batches of `calls` calls.
    #[must_use]
    pub const fn in_batches_of(mut self, calls: u64) -> Self {
        self.batch = Some(calls);
        self
    }
}

/// Returns a function that makes this many calls of another one: `calls!(subjects::measured)`.
#[macro_export]
macro_rules! calls {
    ($call:expr) => {
        |calls| $crate::batch(calls, $call)
    };
}

const fn nothing() {}

/// Calls `call` in a loop. The loop costs the same for each variant: neither argument nor result
/// can be optimized away.
#[inline(always)]
#[allow(clippy::inline_always, reason = "the loop is part of each variant")]
pub fn batch(calls: u64, call: impl Fn(u64) -> u64) {
    for argument in 0..calls {
        black_box(call(black_box(argument)));
    }
}

/// Makes calls whose instructions callgrind counts: the scripts make it count inside this function only, and so only on this
/// thread.
#[inline(never)]
pub fn counted_calls(run: fn(u64), calls: u64) {
    run(black_box(calls));
}

/// Makes calls for a few seconds. In a process without CUDA, the profiler looks for a driver in the first one or two, and
/// calls take a slower path; pools and buffers reach their sizes too.
pub fn settle(calls: impl Fn()) {
    const LONG_ENOUGH: Duration = Duration::from_secs(3);
    let began = Instant::now();
    while began.elapsed() < LONG_ENOUGH {
        calls();
        thread::sleep(Duration::from_millis(2));
    }
}

/// The part of a batch that runs before the clock starts.
const WARMING: u64 = 10;

/// Runs `rounds` rounds of one batch per variant, on `threads` threads at once.
///
/// Returns each variant's nanoseconds per call, one sample per round: the mean over the threads.
pub fn measure(variants: &[Variant], threads: usize, rounds: usize, calls: u64) -> Vec<Samples> {
    let gate = Gate::new(threads);
    let mine = |leader| all_rounds(variants, rounds, calls, leader, &gate);
    let each: Vec<Vec<Vec<f64>>> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| mine(false))).collect();
        let first = mine(true);
        let others = others.into_iter().filter_map(|other| other.join().ok());
        std::iter::once(first).chain(others).collect()
    });
    (0..variants.len())
        .map(|variant| mean_of_threads(&each, variant, rounds))
        .collect()
}

fn mean_of_threads(each: &[Vec<Vec<f64>>], variant: usize, rounds: usize) -> Samples {
    let mean = |round: usize| {
        let sum: f64 = each.iter().map(|thread| thread[variant][round]).sum();
        sum / each.len() as f64
    };
    Samples((0..rounds).map(mean).collect())
}

/// The results of one thread, by variant and round.
fn all_rounds(
    variants: &[Variant],
    rounds: usize,
    calls: u64,
    leader: bool,
    gate: &Gate,
) -> Vec<Vec<f64>> {
    let mut samples = vec![Vec::with_capacity(rounds); variants.len()];
    for round in 0..=rounds {
        for at in order(variants.len(), round) {
            let sample = one_batch(&variants[at], calls, leader, gate);
            // The first round creates everything that is created on first use.
            if round > 0 {
                samples[at].push(sample);
            }
        }
    }
    samples
}

/// Returns all variants in a pseudorandom order that differs per round and is the same on all
/// threads. Otherwise, a variant would always find the caches as the same predecessor left them.
pub(crate) fn order(variants: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..variants).collect();
    order.sort_by_cached_key(|&at| hash_of((at + variants * round) as u64));
    order
}

/// The finalizer of `SplitMix64`, which maps consecutive numbers to unrelated ones.
pub(crate) fn hash_of(number: u64) -> u64 {
    let mut bits = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn one_batch(variant: &Variant, calls: u64, leader: bool, gate: &Gate) -> f64 {
    let calls = variant.batch.unwrap_or(calls);
    if leader {
        (variant.before)();
    }
    gate.wait();
    // Warm up: the state of caches and branch predictor after the previous variant is no cost of a
    // call.
    (variant.run)(calls / WARMING);
    let start = Instant::now();
    (variant.run)(calls);
    let elapsed = start.elapsed();
    gate.wait();
    if leader {
        (variant.after)();
    }
    elapsed.as_nanos() as f64 / calls as f64
}

/// A barrier for all threads. They spin, since waking a thread takes longer than a batch.
struct Gate {
    threads: usize,
    arrived: AtomicUsize,
}

/// Long enough if all threads run. After that, yield the processor to a thread that does not.
const SPINS: u32 = 10_000;

impl Gate {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
        }
    }

    fn wait(&self) {
        let ticket = self.arrived.fetch_add(1, Ordering::AcqRel);
        let all = (ticket / self.threads + 1) * self.threads;
        let mut spins = 0;
        while self.arrived.load(Ordering::Acquire) < all {
            spins += 1;
            if spins < SPINS {
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_every_variant_once_in_an_order_of_its_own() {
        let first = order(9, 1);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..9));
        assert_ne!(first, order(9, 2));
    }
}
