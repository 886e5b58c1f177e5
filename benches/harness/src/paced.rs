//! Paced calls: between two of them, the thread does other work for some microseconds.
//!
//! In a hot loop, the caches and the branch predictor know nothing but the call, and the threads of a profiler that ships its
//! events cannot keep up. Most programs call as here.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Instant;

use crate::Samples;
use crate::batches::{hash_of, order};

/// Makes `calls` calls with other work before each, and returns the sum of the ticks that the calls took.
///
/// A call is timed by itself: from the moment when all instructions before it have ended to the moment when all of its own
/// have. The time of the two readings is part of it, as it is of a bare call.
#[inline(always)]
#[allow(clippy::inline_always, reason = "the loop is part of each variant")]
pub fn paced_batch(calls: u64, call: impl Fn(u64) -> u64) -> u64 {
    let mut ticks = 0;
    for argument in 0..calls {
        other_work(argument);
        let begin = now();
        black_box(call(black_box(argument)));
        ticks += now().wrapping_sub(begin);
    }
    ticks
}

/// Runs `rounds` rounds of one batch of `calls` calls per variant, each by a function that makes them with [`paced_batch`] and
/// returns its result. Returns each variant's nanoseconds per call.
pub fn measure_paced(variants: &[fn(u64) -> u64], rounds: usize, calls: u64) -> Vec<Samples> {
    let (first, began) = (now(), Instant::now());
    let mut ticks = vec![Vec::with_capacity(rounds); variants.len()];
    for round in 0..=rounds {
        for at in order(variants.len(), round) {
            let sum = variants[at](calls);
            // The first round creates everything that is created on first use.
            if round > 0 {
                ticks[at].push(sum as f64 / calls as f64);
            }
        }
    }
    let nanoseconds_per_tick = began.elapsed().as_nanos() as f64 / now().wrapping_sub(first) as f64;
    let of = |ticks: Vec<f64>| ticks.into_iter().map(|sum| sum * nanoseconds_per_tick);
    ticks
        .into_iter()
        .map(|all| Samples(of(all).collect()))
        .collect()
}

const LINE: usize = 64;
/// Larger than the first-level cache, smaller than the second.
const BUFFER: usize = 1 << 20;
/// The lines that are read between two calls: as many bytes as many first-level caches hold.
const LINES: usize = 512;

static DATA: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let bytes = (0..BUFFER as u64 / 8).flat_map(|at| hash_of(at).to_le_bytes());
    bytes.collect()
});

/// Reads 512 lines of a buffer of a mebibyte in no order, and branches on each value, which none can predict.
#[inline(never)]
fn other_work(call: u64) {
    let data = &*DATA;
    let mut place = hash_of(call);
    let mut sum = 0_u64;
    for _ in 0..LINES {
        place = place
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        #[allow(clippy::cast_possible_truncation, reason = "a remainder")]
        let line = ((place >> 20) % (BUFFER / LINE) as u64) as usize;
        let value = data[line * LINE];
        if value & 1 == 0 {
            sum = black_box(sum + u64::from(value));
        } else {
            sum = black_box(sum ^ 1);
        }
    }
    black_box(sum);
}

/// Reads the clock after everything before has ended, and before anything later begins.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "a call would be part of what is timed"
)]
fn now() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has these instructions, which touch no memory.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variant_has_a_sample_of_each_round_and_makes_every_call() {
        use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let run = |calls| paced_batch(calls, |argument| CALLS.fetch_add(1, Relaxed) + argument);
        let samples = measure_paced(&[run], 3, 5);
        assert_eq!(samples[0].0.len(), 3);
        assert_eq!(CALLS.load(Relaxed), 4 * 5, "the first round warms up");
    }
}
