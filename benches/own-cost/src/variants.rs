//! The variants and their baselines.

use std::sync::LazyLock;
use std::time::Duration;

use bench_harness::{Variant, batch};
use profiler_runtime::{flush, set_enabled};

use crate::{late, subjects};

/// A variant, its baseline, and the number of measured calls in one call of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) variant: Variant,
    pub(crate) base: &'static str,
    pub(crate) measured: u32,
    /// `true` if the variant uses the profiler, so that its memory is measured too.
    pub(crate) profiled: bool,
}

pub(crate) const BARE: &str = "bare";
/// The unit of the multiples, as any program can read the time: by a crate that calibrates the
/// clock.
pub(crate) const FLOOR: &str = "two raw timestamps (quanta)";
/// A stricter unit, without a crate: two `rdtsc` instructions, if the processor has them.
pub(crate) const STRICT_FLOOR: &str = "two rdtsc";
const BARE_NESTED: &str = "bare, nested";
const BARE_FUTURE: &str = "bare future";
const BARE_LATE: &str = "bare, while the thread ends";
pub(crate) const OFF: &str = "off";
pub(crate) const ON: &str = "on";
pub(crate) const NESTED: &str = "on, nested in another";

static CLOCK: LazyLock<quanta::Clock> = LazyLock::new(quanta::Clock::new);

/// With its warm-up, a batch fills less than half of a thread's default ring.
const PACE: u64 = 900;

/// Long batches, of variants where something else happens once per batch.
const LONG: u64 = 5000;

const fn nothing() {}

const fn bare(name: &'static str, run: fn(u64)) -> Subject {
    Subject {
        variant: Variant::new(name, run),
        base: BARE,
        measured: 1,
        profiled: false,
    }
}

const fn in_long_batches(mut subject: Subject) -> Subject {
    subject.variant = subject.variant.paced(LONG, nothing);
    subject
}

const fn profiled(variant: Variant) -> Subject {
    Subject {
        variant,
        base: BARE,
        measured: 1,
        profiled: true,
    }
}

fn wait_for_the_collector() {
    flush(Duration::from_secs(5));
}

/// Returns all variants.
pub(crate) fn all() -> Vec<Subject> {
    let mut subjects = floors();
    subjects.extend([
        profiled(
            Variant::new(OFF, |n| batch(n, subjects::plain))
                .between(|| set_enabled(false), || set_enabled(true)),
        ),
        profiled(Variant::new("filtered out", |n| {
            batch(n, subjects::filtered_out);
        })),
        profiled(Variant::new("bypass = true", |n| {
            batch(n, subjects::bypassed);
        })),
        profiled(Variant::new(ON, |n| batch(n, subjects::plain))),
        Subject {
            base: BARE_NESTED,
            measured: 2,
            ..profiled(Variant::new(NESTED, |n| batch(n, subjects::nested)))
        },
        profiled(Variant::new("scope!, literal name", |n| {
            batch(n, subjects::section);
        })),
        profiled(Variant::new("scope!, name built at run time", |n| {
            let name = std::hint::black_box(String::from("a section of run time"));
            batch(n, |x| subjects::section_named_at_run_time(&name, x));
        })),
        Subject {
            base: BARE_FUTURE,
            ..profiled(Variant::new("on, async", |n| {
                batch(n, subjects::run_measured_future);
            }))
        },
        Subject {
            base: BARE_LATE,
            ..in_long_batches(profiled(Variant::new("on, while the thread ends", |n| {
                late::batch(n, subjects::plain);
            })))
        },
        profiled(Variant::new("log = …, log_every = 100", |n| {
            batch(n, subjects::logged_rarely);
        })),
        profiled(
            Variant::new("log = …, ring never full", |n| batch(n, subjects::logged))
                .paced(PACE, wait_for_the_collector),
        ),
        in_long_batches(profiled(Variant::new("log = …, hot loop", |n| {
            batch(n, subjects::logged);
        }))),
    ]);
    subjects
}

/// The baselines.
fn floors() -> Vec<Subject> {
    vec![
        bare(BARE, |n| batch(n, subjects::bare)),
        bare(BARE_NESTED, |n| batch(n, subjects::bare_nested)),
        bare(BARE_FUTURE, |n| batch(n, subjects::run_bare_future)),
        in_long_batches(bare(BARE_LATE, |n| late::batch(n, subjects::bare))),
        bare(FLOOR, |n| {
            let clock = &*CLOCK;
            batch(n, |x| subjects::two_raw(clock, x));
        }),
        #[cfg(target_arch = "x86_64")]
        bare(STRICT_FLOOR, |n| batch(n, subjects::two_rdtsc)),
        bare("two Instant::now()", |n| batch(n, subjects::two_instants)),
    ]
}
