//! The measured functions: one body, bare and measured in every form.

use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use bench_harness::subjects::{bare, body, ready};
use profiler_runtime::log::LogError;
use profiler_runtime::{ScalarLogger, measure, measure_execution_time, scope};

use crate::measured::measured;

#[inline(never)]
pub(crate) fn two_raw(clock: &quanta::Clock, x: u64) -> u64 {
    let start = clock.raw();
    let result = body(x);
    black_box(clock.raw().wrapping_sub(start));
    result
}

#[inline(never)]
pub(crate) fn two_instants(x: u64) -> u64 {
    let start = Instant::now();
    let result = body(x);
    black_box(start.elapsed());
    result
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
pub(crate) fn bare_nested(x: u64) -> u64 {
    bare(x) + 1
}

#[inline(never)]
#[measure_execution_time]
pub(crate) fn measured_nested(x: u64) -> u64 {
    measured(x) + 1
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

/// How many names [`name`] returns in turn. At most 1,000.
pub(crate) static KNOWN: AtomicUsize = AtomicUsize::new(1);

/// A name that the program builds at run time, one of [`KNOWN`].
fn name(x: u64) -> &'static str {
    static NAMES: LazyLock<Vec<String>> =
        LazyLock::new(|| (0..1000).map(|layer| format!("layer {layer}")).collect());
    #[allow(clippy::cast_possible_truncation, reason = "a remainder")]
    let at = (x % KNOWN.load(Relaxed) as u64) as usize;
    &NAMES[at]
}

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

/// A name of which the compiler knows nothing, but which takes no time to find.
#[inline(never)]
pub(crate) fn scope_one_name(name: &str, x: u64) -> u64 {
    let _scope = scope!(name);
    body(x)
}

#[inline(never)]
#[allow(clippy::unused_async, reason = "a future that is ready immediately")]
async fn future(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
#[allow(clippy::unused_async, reason = "a future that is ready immediately")]
#[measure_execution_time]
async fn measured_future(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
pub(crate) fn bare_ready(x: u64) -> u64 {
    ready(future(x))
}

#[inline(never)]
pub(crate) fn measured_ready(x: u64) -> u64 {
    ready(measured_future(x))
}

/// A logger that counts its values, on a thread of the profiler.
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

#[inline(never)]
#[measure_execution_time(log = &COUNTING, log_every = 100)]
pub(crate) fn logged_once_in_100(x: u64) -> u64 {
    body(x)
}

/// No more than one call in a counted batch is logged.
#[inline(never)]
#[measure_execution_time(log = &COUNTING, log_every = 1000)]
pub(crate) fn logged_once_in_1000(x: u64) -> u64 {
    body(x)
}
