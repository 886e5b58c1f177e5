//! The measured functions, and the same without the profiler.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use profiler_runtime::log::LogError;
use profiler_runtime::{ScalarLogger, measure, measure_execution_time, scope};

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
#[measure_execution_time]
pub(crate) fn measured(x: u64) -> u64 {
    body(x)
}

/// A function about which its callers know nothing; it may panic.
static CALLEE: fn(u64) -> u64 = bare;

/// The body of a function that calls others, as most that are worth measuring do.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it is the body of two subjects")]
fn calling_body(x: u64) -> u64 {
    let callee = black_box(CALLEE);
    callee(x) + callee(x + 1)
}

#[inline(never)]
pub(crate) fn bare_calling(x: u64) -> u64 {
    calling_body(x)
}

#[inline(never)]
#[measure_execution_time]
pub(crate) fn measured_calling(x: u64) -> u64 {
    calling_body(x)
}

#[inline(never)]
pub(crate) fn bare_nested(x: u64) -> u64 {
    bare(x) + 1
}

#[inline(never)]
#[measure_execution_time]
pub(crate) fn measured_nested(x: u64) -> u64 {
    measured(x) + 1
}

#[inline(never)]
#[measure_execution_time(name = "filtered out")]
pub(crate) fn filtered_out(x: u64) -> u64 {
    body(x)
}

/// A name that the program builds at run time, one of [`KNOWN`].
fn name(x: u64) -> &'static str {
    static NAMES: LazyLock<Vec<String>> =
        LazyLock::new(|| (0..1000).map(|layer| format!("layer {layer}")).collect());
    #[allow(clippy::cast_possible_truncation, reason = "a remainder")]
    let at = (x % KNOWN.load(Relaxed) as u64) as usize;
    &NAMES[at]
}

/// How many names the call site sees, one after the other. At most 1,000.
pub(crate) static KNOWN: AtomicUsize = AtomicUsize::new(1);

#[inline(never)]
pub(crate) fn bare_named(x: u64) -> u64 {
    black_box(name(x));
    body(x)
}

#[inline(never)]
pub(crate) fn scope_named(x: u64) -> u64 {
    let _scope = scope!(black_box(name(x)));
    body(x)
}

#[inline(never)]
pub(crate) fn block_named(x: u64) -> u64 {
    measure!(black_box(name(x)), { body(x) })
}

#[inline(never)]
pub(crate) fn scope_literal(x: u64) -> u64 {
    let _scope = scope!("a section");
    body(x)
}

#[inline(never)]
#[allow(clippy::unused_async, reason = "a future that is ready immediately")]
async fn future(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
#[measure_execution_time]
async fn measured_future(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
pub(crate) fn bare_future(x: u64) -> u64 {
    poll_once(future(x))
}

#[inline(never)]
pub(crate) fn ready_future(x: u64) -> u64 {
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

/// A logger that counts its values, on a thread that is not counted.
struct Counting;

static COUNTING: Counting = Counting;

/// The values that have arrived at the logger.
pub(crate) static ARRIVED: AtomicU64 = AtomicU64::new(0);

impl ScalarLogger for Counting {
    fn add_scalar(&self, _: &str, _: f64, _: u64) -> Result<(), LogError> {
        ARRIVED.fetch_add(1, Relaxed);
        Ok(())
    }
}

#[inline(never)]
#[measure_execution_time(log = &COUNTING)]
pub(crate) fn logged(x: u64) -> u64 {
    body(x)
}

/// No more than one call in a batch is logged.
#[inline(never)]
#[measure_execution_time(log = &COUNTING, log_every = 1000)]
pub(crate) fn rarely_logged(x: u64) -> u64 {
    body(x)
}
