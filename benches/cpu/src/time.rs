//! The time of each variant, next to the bounds that the project promises.

use bench_harness::{Cell, Options, Spread, Table, Variant, added};

use crate::variants::{BARE, FLOOR, NESTED, OFF, ON, STRICT_FLOOR};

/// The batches per variant, unless `--rounds` is given.
const ROUNDS: usize = 5000;

const COLUMNS: &str = "variant | ns/call .2 \
    | added ns: 2nd pct .2 | 1st quartile .2 | median .2 | 3rd quartile .2 | of minima .2 \
    | x two raw: 2nd pct .2 | median .2 | of minima .2 \
    | x two rdtsc: 2nd pct .2 | median .2 | of minima .2 | bound";

/// Measures all variants on a number of threads: in nanoseconds, and as multiples of two raw timestamps.
pub(crate) fn measure(variants: &[Variant], threads: usize, options: &Options) -> Table {
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let samples = bench_harness::measure(variants, threads, rounds, options.calls);
    let title = format!("cost of one measured call, threads at once: {threads}");
    let mut table = Table::new(title, COLUMNS);
    let [raw, rdtsc] = [FLOOR, STRICT_FLOOR].map(|floor| added(variants, &samples, floor, BARE));
    for (variant, samples_of) in variants.iter().zip(&samples) {
        let added = added(variants, &samples, variant.name, variant.base);
        let Spread {
            low,
            lower,
            median,
            upper,
            min,
        } = added;
        let numbers = [samples_of.spread().median, low, lower, median, upper, min];
        let ratios = [raw, rdtsc]
            .map(|unit| added.over(&unit))
            .into_iter()
            .flatten();
        let numbers = numbers.into_iter().chain(ratios).map(Cell::from);
        let bound = match variant.name {
            ON | NESTED => Some("<= 1.40"),
            OFF => Some("a load and a branch"),
            _ => None,
        };
        let name = [Cell::from(variant.name)].into_iter();
        table.push(name.chain(numbers).chain([bound.into()]).collect());
    }
    table
}
