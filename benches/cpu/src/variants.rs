//! The kinds of calls that are timed, and those whose instructions are counted.

use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bench_harness::subjects::{bare, two_rdtsc};
use bench_harness::{Variant, batch, calls};
use profiler_runtime::{flush, scope, set_enabled};

use crate::late;
use crate::measured::{measured, scope_literal};
use crate::subjects::{
    KNOWN, bare_calling, bare_named, bare_nested, bare_ready, block_named, bypassed, filtered_out,
    logged, logged_once_in_100, logged_once_in_1000, measured_calling, measured_nested,
    measured_ready, scope_named, scope_one_name, two_instants, two_raw,
};

pub(crate) const BARE: &str = "bare";
/// The unit of the multiples, as any program can read the time: by a crate that calibrates the
/// clock.
pub(crate) const FLOOR: &str = "two-raw-timestamps";
/// A stricter unit, without a crate: two `rdtsc` instructions, if the processor has them.
pub(crate) const STRICT_FLOOR: &str = "two-rdtsc";
const BARE_LATE: &str = "bare-while-thread-ends";
pub(crate) const OFF: &str = "off";
pub(crate) const ON: &str = "on";
pub(crate) const NESTED: &str = "on-nested";
pub(crate) const LOGGED: &str = "logged";
pub(crate) const RECORDED: &str = "recorded";

/// With its warm-up, a batch fills less than half of a thread's default ring.
const PACE: u64 = 900;

/// Long batches, of variants where something else happens once per batch.
const LONG: u64 = 5000;

const fn nothing() {}

/// Waits until all log entries have reached their logger.
pub(crate) fn arrive() {
    flush(Duration::from_secs(10));
}

const fn floor(name: &'static str, run: fn(u64)) -> Variant {
    Variant {
        base: BARE,
        ..Variant::base(name, run)
    }
}

const fn on(name: &'static str, run: fn(u64)) -> Variant {
    Variant::beyond(BARE, name, run)
}

fn off(base: &'static str, name: &'static str, run: fn(u64)) -> Variant {
    Variant::beyond(base, name, run).between(|| set_enabled(false), || set_enabled(true))
}

fn named<const NAMES: usize>(base: &'static str, name: &'static str, run: fn(u64)) -> Variant {
    Variant::beyond(base, name, run).between(|| KNOWN.store(NAMES, Relaxed), nothing)
}

fn nested() -> Variant {
    Variant {
        measured: 2,
        ..Variant::beyond("bare-nested", NESTED, calls!(measured_nested))
    }
}

/// The variants that are timed.
pub(crate) fn timed() -> Vec<Variant> {
    static CLOCK: LazyLock<quanta::Clock> = LazyLock::new(quanta::Clock::new);
    vec![
        Variant::base(BARE, calls!(bare)),
        Variant::base("bare-nested", calls!(bare_nested)),
        Variant::base("bare-future", calls!(bare_ready)),
        Variant::base(BARE_LATE, |n| late::batch(calls!(bare), n)).in_batches_of(LONG),
        floor(FLOOR, |n| {
            let clock = &*CLOCK;
            batch(n, |x| two_raw(clock, x));
        }),
        floor(STRICT_FLOOR, calls!(two_rdtsc)),
        floor("two-instants", calls!(two_instants)),
        off(BARE, OFF, calls!(measured)),
        on("filtered-out", calls!(filtered_out)),
        on("bypassed", calls!(bypassed)),
        on(ON, calls!(measured)),
        nested(),
        on("scope-literal", calls!(scope_literal)),
        on("scope-named", |n| {
            let name = black_box(String::from("a section of run time"));
            batch(n, |x| scope_one_name(&name, x));
        }),
        Variant::beyond("bare-future", "future-ready", calls!(measured_ready)),
        off("bare-future", "off-future", calls!(measured_ready)),
        Variant::beyond(BARE_LATE, "on-while-thread-ends", |n| {
            late::batch(calls!(measured), n);
        })
        .in_batches_of(LONG),
        on("log-every-100", calls!(logged_once_in_100)),
        on("logged-ring-never-full", calls!(logged))
            .between(nothing, arrive)
            .in_batches_of(PACE),
        on("logged-hot-loop", calls!(logged)).in_batches_of(LONG),
    ]
}

/// Gives the name that is called next a high number.
fn many_names() {
    for number in 0..1100 {
        let _scope = scope!(format!("earlier name {number}"));
    }
}

/// The variants whose instructions are counted.
pub(crate) fn counted() -> Vec<Variant> {
    vec![
        Variant::base(BARE, calls!(bare)),
        Variant::base("bare-calling", calls!(bare_calling)),
        Variant::base("bare-nested", calls!(bare_nested)),
        Variant::base("bare-future", calls!(bare_ready)),
        named::<10>("bare-named-10", "bare-named-10", calls!(bare_named)),
        named::<1000>("bare-named-1000", "bare-named-1000", calls!(bare_named)),
        off(BARE, OFF, calls!(measured)),
        off("bare-calling", "off-calling", calls!(measured_calling)),
        on("filtered-out", calls!(filtered_out)),
        on(ON, calls!(measured)),
        Variant::beyond("bare-calling", "on-calling", calls!(measured_calling)),
        nested(),
        on("on-after-1024-names", calls!(measured)).between(many_names, nothing),
        on("scope-literal", calls!(scope_literal)),
        named::<10>("bare-named-10", "scope-named-10", calls!(scope_named)),
        named::<1000>("bare-named-1000", "scope-named-1000", calls!(scope_named)),
        named::<10>("bare-named-10", "measure-named-10", calls!(block_named)),
        named::<1000>("bare-named-1000", "measure-named-1000", calls!(block_named)),
        Variant::beyond("bare-future", "future-ready", calls!(measured_ready)),
        off("bare-future", "off-future", calls!(measured_ready)),
        on(LOGGED, calls!(logged)),
        on("rarely-logged", calls!(logged_once_in_1000)),
        on(RECORDED, calls!(measured)),
    ]
}
