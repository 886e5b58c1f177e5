//! What is compared with what.

use std::sync::LazyLock;
use std::time::Duration;

use bench_harness::{Variant, batch};
use profiler_runtime::{flush, set_enabled};

use crate::{late, subjects};

/// A variant, what is taken off its cost, and how many measured calls one call of it makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) variant: Variant,
    pub(crate) base: &'static str,
    pub(crate) measured: u32,
    /// Whether the profiler takes part, so that memory is asked after too.
    pub(crate) ours: bool,
}

pub(crate) const BARE: &str = "bare";
/// What the costs are multiples of, as any program can take them: through a crate that calibrates.
pub(crate) const FLOOR: &str = "two raw timestamps (quanta)";
/// The same without a crate: two instructions, where the processor has them.
pub(crate) const STRICT_FLOOR: &str = "two rdtsc";
const BARE_NESTED: &str = "bare, nested";
const BARE_FUTURE: &str = "bare future";
const BARE_LATE: &str = "bare, while the thread ends";
pub(crate) const OFF: &str = "off";
pub(crate) const ON: &str = "on";
pub(crate) const NESTED: &str = "on, nested in another";

static CLOCK: LazyLock<quanta::Clock> = LazyLock::new(quanta::Clock::new);

/// With its warm-up under half of what a thread's ring holds by default.
const PACE: u64 = 900;

const fn bare(name: &'static str, run: fn(u64)) -> Subject {
    Subject {
        variant: Variant::new(name, run),
        base: BARE,
        measured: 1,
        ours: false,
    }
}

const fn ours(variant: Variant) -> Subject {
    Subject {
        variant,
        base: BARE,
        measured: 1,
        ours: true,
    }
}

fn wait_for_the_collector() {
    flush(Duration::from_secs(5));
}

/// All of them.
pub(crate) fn all() -> Vec<Subject> {
    let mut subjects = floors();
    subjects.extend([
        ours(
            Variant::new(OFF, |n| batch(n, subjects::plain))
                .between(|| set_enabled(false), || set_enabled(true)),
        ),
        ours(Variant::new("filtered out", |n| {
            batch(n, subjects::filtered_out);
        })),
        ours(Variant::new("bypass = true", |n| {
            batch(n, subjects::bypassed);
        })),
        ours(Variant::new(ON, |n| batch(n, subjects::plain))),
        Subject {
            base: BARE_NESTED,
            measured: 2,
            ..ours(Variant::new(NESTED, |n| batch(n, subjects::nested)))
        },
        ours(Variant::new("scope!, literal name", |n| {
            batch(n, subjects::section);
        })),
        ours(Variant::new("scope!, name built at run time", |n| {
            let name = std::hint::black_box(String::from("a section of run time"));
            batch(n, |x| subjects::section_named_at_run_time(&name, x));
        })),
        Subject {
            base: BARE_FUTURE,
            ..ours(Variant::new("on, async", |n| {
                batch(n, subjects::run_measured_future);
            }))
        },
        Subject {
            base: BARE_LATE,
            ..ours(Variant::new("on, while the thread ends", |n| {
                late::batch(n, subjects::plain);
            }))
        },
        ours(Variant::new("log = …, every = 100", |n| {
            batch(n, subjects::logged_rarely);
        })),
        ours(
            Variant::new("log = …, ring never full", |n| batch(n, subjects::logged))
                .paced(PACE, wait_for_the_collector),
        ),
        ours(Variant::new("log = …, hot loop", |n| {
            batch(n, subjects::logged);
        })),
    ]);
    subjects
}

/// What is measured against.
fn floors() -> Vec<Subject> {
    vec![
        bare(BARE, |n| batch(n, subjects::bare)),
        bare(BARE_NESTED, |n| batch(n, subjects::bare_nested)),
        bare(BARE_FUTURE, |n| batch(n, subjects::run_bare_future)),
        bare(BARE_LATE, |n| late::batch(n, subjects::bare)),
        bare(FLOOR, |n| {
            let clock = &*CLOCK;
            batch(n, |x| subjects::two_raw(clock, x));
        }),
        #[cfg(target_arch = "x86_64")]
        bare(STRICT_FLOOR, |n| batch(n, subjects::two_rdtsc)),
        bare("two Instant::now()", |n| batch(n, subjects::two_instants)),
    ]
}
