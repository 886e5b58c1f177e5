//! The memory that calls leave behind: none, after the first call of each name.

use bench_harness::memory::{heap, resident};
use bench_harness::{Table, Variant, row};

use crate::variants::{ON, arrive};

const MILLION: u64 = 1_000_000;
/// Long enough that one byte per call would show in the resident memory, which is counted in pages.
const LONG: u64 = 50 * MILLION;

/// The allocations during a million calls of each variant, and the bytes that they leave behind. An earlier million warms up,
/// until the collector's buffers have reached their sizes.
pub(crate) fn of_a_million(variants: &[Variant]) -> Table {
    let title = "what one million calls leave on the heap, over all threads";
    let mut table = Table::new(title, "variant | allocations | bytes kept");
    for variant in variants.iter().filter(|variant| variant.measured > 0) {
        call(variant, MILLION);
        arrive();
        let before = heap();
        call(variant, MILLION);
        let allocations = heap().allocations - before.allocations;
        arrive();
        let kept = heap().bytes - before.bytes;
        row!(table, variant.name, allocations, kept as f64);
    }
    table
}

/// How much the resident memory grows over a long run of calls, if the system shows it.
pub(crate) fn of_a_long_run(variants: &[Variant]) -> Table {
    let grown = || {
        let variant = variants.iter().find(|variant| variant.name == ON)?;
        call(variant, MILLION);
        let before = resident()?.cast_signed();
        call(variant, LONG);
        Some((resident()?.cast_signed() - before) as f64 / 1024.0)
    };
    let mut table = Table::new("resident memory", "calls | KiB more");
    row!(table, format!("{} million", LONG / MILLION), grown());
    table
}

/// Makes this many calls, in batches of the variant's size.
fn call(variant: &Variant, calls: u64) {
    let batch = variant.batch.unwrap_or(calls);
    for _ in 0..calls / batch {
        (variant.before)();
        (variant.run)(batch);
        (variant.after)();
    }
}
