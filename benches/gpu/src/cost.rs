//! The cost of each variant, compared with its unavoidable part in the same rounds: its time, allocations and driver calls.

use std::collections::BTreeMap;

use bench_harness::memory::allocations_of_this_thread;
use bench_harness::{Cell, Outcome, Spread, Table, Variant, added, measure, row};

use crate::device::{BATCH, Gpu};
use crate::processors::Processors;
use crate::variants::Subject;

/// The batches per variant, unless `--rounds` is given.
const ROUNDS: usize = 1000;

/// Measures the times with each placement of the resolver.
pub(crate) fn placed(
    subjects: &[Subject],
    on_gpu: bool,
    rounds: Option<usize>,
) -> Outcome<Vec<Table>> {
    let processors = Processors::get()?;
    let mut tables = Vec::new();
    for (place, processor) in processors.places() {
        processors.place(processor)?;
        Gpu::here().read_on(Some(processor));
        let backend = if on_gpu { "auto" } else { "cpu" };
        let title = format!("PROFILER_BACKEND={backend}, ns per measured call, read {place}");
        tables.push(times(title, subjects, rounds.unwrap_or(ROUNDS)));
    }
    Gpu::here().read_on(None);
    processors.release()?;
    Ok(tables)
}

/// The time of each variant, in nanoseconds per measured call: as a whole, beyond the two records, and beyond all driver calls,
/// which is the profiler's own time.
fn times(title: String, subjects: &[Subject], rounds: usize) -> Table {
    let variants: Vec<Variant> = subjects.iter().map(|subject| subject.variant).collect();
    let samples = measure(&variants, 1, rounds, BATCH);
    let mut table = Table::new(
        title + "; profiler: beyond all driver calls, bound 150",
        "variant | all: median .1 | of minima .1 | beyond the records: median .1 | of minima .1 \
         | profiler: median .1 | of minima .1",
    );
    for (Subject { variant, driver }, samples_of) in subjects.iter().zip(&samples) {
        let beyond = |base| {
            let added = || added(&variants, &samples, variant.name, base);
            (variant.measured > 0).then(added)
        };
        let spreads = [
            Some(samples_of.spread()),
            beyond(variant.base),
            beyond(driver),
        ];
        let both = |spread: Option<Spread>| {
            let part = |of: fn(Spread) -> f64| Cell::from(spread.map(of));
            [part(|spread| spread.median), part(|spread| spread.min)]
        };
        let name = [Cell::from(variant.name)].into_iter();
        table.push(name.chain(spreads.into_iter().flat_map(both)).collect());
    }
    table
}

/// Counts the allocations of the calling thread, and its driver calls per measured call.
pub(crate) fn allocations_and_calls(subjects: &[Subject]) -> Outcome<Table> {
    const HEAP_BATCHES: u64 = 100;
    /// Few enough calls that the resolver, which calls the driver too, runs during some of the batches only.
    const FEW: u64 = 48;
    const DRIVER_BATCHES: usize = 200;
    let mut table = Table::new(
        "allocations and driver calls of a measured call, on its thread",
        "variant | allocations | in calls | driver calls, each",
    );
    for Subject { variant, .. } in subjects {
        if variant.measured == 0 {
            continue;
        }
        let mut blocks = 0;
        for _ in 0..HEAP_BATCHES {
            (variant.before)();
            let before = allocations_of_this_thread();
            (variant.run)(BATCH);
            blocks += allocations_of_this_thread() - before;
            (variant.after)();
        }
        let mut batches: Vec<BTreeMap<String, u64>> = Vec::new();
        for _ in 0..DRIVER_BATCHES {
            (variant.before)();
            let before = Gpu::here().simulator.report()?.calls;
            (variant.run)(FEW);
            let mut made = Gpu::here().simulator.report()?.calls;
            (variant.after)();
            for (entry, calls) in &mut made {
                *calls -= before.get(entry).copied().unwrap_or(0);
            }
            batches.push(made);
        }
        // The minimum over all batches excludes the calls that the resolver made during a batch.
        let least = |entry| {
            batches
                .iter()
                .map(|made| made.get(entry).copied().unwrap_or(0))
                .min()
        };
        let entries = batches.last().into_iter().flat_map(BTreeMap::keys);
        let each = entries.filter_map(|entry| match least(entry) {
            None | Some(0) => None,
            Some(calls) => Some(format!("{} {entry}", calls as f64 / FEW as f64)),
        });
        let each = each.collect::<Vec<_>>().join(", ");
        row!(table, variant.name, blocks, HEAP_BATCHES * BATCH, each);
    }
    Ok(table)
}
