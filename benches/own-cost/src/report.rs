//! The table of costs, and the bounds that the project promises.

use std::fmt;

use bench_harness::{Samples, Spread, Table};
use serde::Serialize;

use crate::variants::{FLOOR, NESTED, OFF, ON, STRICT_FLOOR, Subject};

/// The results of all variants on a number of threads.
#[derive(Serialize)]
pub(crate) struct Run {
    threads: usize,
    rows: Vec<Row>,
}

/// One variant, in nanoseconds and as multiples of two raw timestamps.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    nanoseconds: Spread,
    added: Spread,
    ratio: f64,
    ratio_of_minima: f64,
    /// The ratio to two bare `rdtsc`, of the 2nd percentiles.
    strict_ratio: f64,
}

impl Run {
    pub(crate) fn new(threads: usize, subjects: &[Subject], samples: &[Samples]) -> Self {
        let added = |subject: &Subject, samples_of: &Samples| {
            let base = subjects
                .iter()
                .position(|other| other.variant.name == subject.base);
            let base = base.map_or(samples_of, |at| &samples[at]);
            samples_of.added_to(base, subject.measured)
        };
        let pairs = || subjects.iter().zip(samples);
        let floor = |name: &str| {
            pairs()
                .find(|(subject, _)| subject.variant.name == name)
                .map(|(subject, samples)| added(subject, samples))
        };
        let (strict, floor) = (floor(STRICT_FLOOR), floor(FLOOR));
        let rows = pairs().map(|(subject, samples)| {
            let added = added(subject, samples);
            let by = |part: fn(&Spread) -> f64| floor.map_or(f64::NAN, |f| part(&added) / part(&f));
            Row {
                name: subject.variant.name,
                nanoseconds: samples.spread(),
                added,
                ratio: by(|spread| spread.median),
                ratio_of_minima: by(|spread| spread.min),
                strict_ratio: strict.map_or(f64::NAN, |strict| added.low / strict.low),
            }
        });
        Self {
            threads,
            rows: rows.collect(),
        }
    }

    /// Returns the ratio of what two variants add, for 2nd percentiles, medians and minima.
    fn ratio(&self, name: &str, floor: &str) -> Option<[f64; 3]> {
        let (row, floor) = (&self.row(name)?.added, &self.row(floor)?.added);
        Some([
            row.low / floor.low,
            row.median / floor.median,
            row.min / floor.min,
        ])
    }

    fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at_once = if self.threads == 1 {
            "on one thread".to_owned()
        } else {
            format!("on {} threads at once", self.threads)
        };
        writeln!(f, "cost of one measured call {at_once}")?;
        let mut table = Table::new(&[
            "variant",
            "ns/call",
            "added ns: median",
            "middle half",
            "of minima",
            "x two raw: median",
            "of minima",
            "x two rdtsc: 2nd percentile",
        ]);
        for row in &self.rows {
            let added = &row.added;
            table.row([
                row.name.to_owned(),
                format!("{:.2}", row.nanoseconds.median),
                format!("{:.2}", added.median),
                format!("{:.2}..{:.2}", added.lower, added.upper),
                format!("{:.2}", added.min),
                format!("{:.2}", row.ratio),
                format!("{:.2}", row.ratio_of_minima),
                format!("{:.2}", row.strict_ratio),
            ]);
        }
        write!(f, "{table}")
    }
}

/// The bounds that the project promises, next to the results.
pub(crate) fn print_bounds(runs: &[Run]) {
    let mut table = Table::new(&[
        "promise",
        "bound",
        "threads",
        "2nd percentile",
        "median",
        "of minima",
    ]);
    for run in runs {
        for name in [ON, NESTED] {
            for floor in [FLOOR, STRICT_FLOOR] {
                let Some([low, median, minima]) = run.ratio(name, floor) else {
                    continue;
                };
                table.row([
                    format!("{name} / {floor}"),
                    "<= 1.40".to_owned(),
                    run.threads.to_string(),
                    format!("{low:.2}"),
                    format!("{median:.2}"),
                    format!("{minima:.2}"),
                ]);
            }
        }
        let Some(off) = run.row(OFF) else { continue };
        table.row([
            "off, in ns".to_owned(),
            "a load and a branch".to_owned(),
            run.threads.to_string(),
            format!("{:.2}", off.added.low),
            format!("{:.2}", off.added.median),
            format!("{:.2}", off.added.min),
        ]);
    }
    println!("{table}");
}
