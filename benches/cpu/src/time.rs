//! The time of each variant, next to the bounds that the project promises.

use bench_harness::{Cell, Options, Spread, Table, Variant, added};

use crate::variants::{BARE, FLOOR, NESTED, OFF, ON, STRICT_FLOOR};

/// The batches per variant, unless `--rounds` is given.
const ROUNDS: usize = 5000;

const COLUMNS: &str = "variant | ns/call .2 \
    | added ns: 2nd pct .2 | 1st quartile .2 | median .2 | 3rd quartile .2 | of minima .2 \
    | x two raw: 2nd pct .2 | median .2 | of minima .2 \
    | x two rdtsc: 2nd pct .2 | median .2 | of minima .2 | bound";

/// The most that a measured call may add, as a multiple of what two `rdtsc` add, by the 2nd percentile: a tenth beyond the goal.
const MOST: f64 = 1.1 * 1.32;

/// Measures all variants on a number of threads: in nanoseconds, and as multiples of two raw timestamps. Also returns the
/// variants that exceed their bound.
pub(crate) fn measure(
    variants: &[Variant],
    threads: usize,
    options: &Options,
) -> (Table, Vec<String>) {
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let samples = bench_harness::measure(variants, threads, rounds, options.calls);
    let title = format!("cost of one measured call, threads at once: {threads}");
    let mut table = Table::new(title, COLUMNS);
    let mut exceeded = Vec::new();
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
        let ratios = [raw, rdtsc].map(|unit| added.over(&unit));
        let bound = match variant.name {
            ON | NESTED => {
                let ratio = ratios[1][0];
                if ratio > MOST {
                    exceeded.push(format!("{} {ratio:.2} x two rdtsc", variant.name));
                }
                Some(format!("<= {MOST:.2}"))
            }
            OFF => Some("a load and a branch".to_owned()),
            _ => None,
        };
        let numbers = numbers
            .into_iter()
            .chain(ratios.into_iter().flatten())
            .map(Cell::from);
        let name = [Cell::from(variant.name)].into_iter();
        table.push(name.chain(numbers).chain([bound.into()]).collect());
    }
    (table, exceeded)
}
