//! The measured functions: one body, bare and measured in every form.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use profiler_runtime::log::LogError;
use profiler_runtime::{ScalarLogger, measure_execution_time, scope};

/// A logger that does nothing, so that only the delivery to it is measured.
struct NoOp;

impl ScalarLogger for NoOp {
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
        black_box((tag, value, step));
        Ok(())
    }
}

static NO_OP: NoOp = NoOp;

/// The smallest body of a call.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it is the body of each subject")]
fn body(x: u64) -> u64 {
    black_box(x) + 1
}

#[inline(never)]
pub(crate) fn bare(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
pub(crate) fn two_raw(clock: &quanta::Clock, x: u64) -> u64 {
    let start = clock.raw();
    let result = body(x);
    black_box(clock.raw().wrapping_sub(start));
    result
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub(crate) fn two_rdtsc(x: u64) -> u64 {
    // SAFETY: every x86-64 processor has the instruction, which touches no memory.
    let start = unsafe { std::arch::x86_64::_rdtsc() };
    let result = body(x);
    // SAFETY: as above.
    let end = unsafe { std::arch::x86_64::_rdtsc() };
    black_box(end.wrapping_sub(start));
    result
}

#[inline(never)]
pub(crate) fn two_instants(x: u64) -> u64 {
    let start = std::time::Instant::now();
    let result = body(x);
    black_box(start.elapsed());
    result
}

#[inline(never)]
#[measure_execution_time]
pub(crate) fn plain(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
pub(crate) fn bare_nested(x: u64) -> u64 {
    bare(x) + 1
}

#[inline(never)]
#[measure_execution_time]
pub(crate) fn nested(x: u64) -> u64 {
    plain(x) + 1
}

#[inline(never)]
#[measure_execution_time(name = "filtered out")]
pub(crate) fn filtered_out(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
#[measure_execution_time(bypass = black_box(true))]
pub(crate) fn bypassed(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
#[measure_execution_time(log = &NO_OP)]
pub(crate) fn logged(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
#[measure_execution_time(log = &NO_OP, log_every = 100)]
pub(crate) fn logged_rarely(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
pub(crate) fn section(x: u64) -> u64 {
    let _scope = scope!("a section");
    body(x)
}

#[inline(never)]
pub(crate) fn section_named_at_run_time(name: &str, x: u64) -> u64 {
    let _scope = scope!(name);
    body(x)
}

#[inline(never)]
#[allow(clippy::unused_async, reason = "a future that is ready immediately")]
async fn bare_future(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
#[measure_execution_time]
async fn measured_future(x: u64) -> u64 {
    body(x)
}

pub(crate) fn run_bare_future(x: u64) -> u64 {
    poll_once(bare_future(x))
}

pub(crate) fn run_measured_future(x: u64) -> u64 {
    poll_once(measured_future(x))
}

/// Runs a future that is always ready.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "bare and measured futures must be equal"
)]
fn poll_once(future: impl Future<Output = u64>) -> u64 {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => 0,
    }
}
