//! The functions without the profiler that several benches call.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The smallest body of a call.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it is the body of each subject")]
pub fn body(x: u64) -> u64 {
    black_box(x) + 1
}

/// The body alone.
#[inline(never)]
pub fn bare(x: u64) -> u64 {
    body(x)
}

/// The body between two readings of the time-stamp counter, without a crate.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub fn two_rdtsc(x: u64) -> u64 {
    // SAFETY: every x86-64 processor has the instruction, which touches no memory.
    let start = unsafe { std::arch::x86_64::_rdtsc() };
    let result = body(x);
    // SAFETY: as above.
    let end = unsafe { std::arch::x86_64::_rdtsc() };
    black_box(end.wrapping_sub(start));
    result
}

/// The nearest thing on other processors: the body between two readings by a crate.
#[cfg(not(target_arch = "x86_64"))]
#[inline(never)]
pub fn two_rdtsc(x: u64) -> u64 {
    static CLOCK: std::sync::LazyLock<quanta::Clock> = std::sync::LazyLock::new(quanta::Clock::new);
    let start = CLOCK.raw();
    let result = body(x);
    black_box(CLOCK.raw().wrapping_sub(start));
    result
}

/// Runs a future that is always ready.
///
/// # Panics
///
/// Panics if it is not.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "bare and measured futures must be equal"
)]
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("it never waits"),
    }
}
