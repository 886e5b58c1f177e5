//! The tables, and the bounds that the project promises.

use std::fmt;

use bench_harness::{Machine, Spread, Table};
use serde::{Deserialize, Serialize};

use crate::allocations::Allocations;
use crate::calls::DriverCalls;
use crate::cost::Cost;
use crate::processors::Placement;
use crate::sustained::Sustained;

#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) cuda: Half,
    pub(crate) cpu: Half,
}

/// The costs of calls with one placement of the resolver.
#[derive(Serialize, Deserialize)]
pub(crate) struct PlacedCosts {
    pub(crate) placement: Placement,
    pub(crate) costs: Vec<Cost>,
}

/// The results of one process.
#[derive(Serialize, Deserialize)]
pub(crate) struct Half {
    pub(crate) costs: Vec<PlacedCosts>,
    pub(crate) allocations: Vec<Allocations>,
    pub(crate) calls: Vec<DriverCalls>,
    pub(crate) sustained: Vec<Sustained>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "PROFILER_BACKEND=auto, ns per measured call; profiler: beyond all driver calls, bound 150"
        )?;
        self.cuda.show_costs(f)?;
        writeln!(f, "PROFILER_BACKEND=cpu, ns per measured call")?;
        self.cpu.show_costs(f)?;
        self.cuda.show_calls(f)?;
        self.cuda.show_sustained(f)
    }
}

/// Formats the median and the minimum.
fn both(spread: Option<Spread>) -> [String; 2] {
    match spread {
        Some(spread) => [spread.median, spread.min].map(|ns| format!("{ns:.1}")),
        None => [String::new(), String::new()],
    }
}

impl PlacedCosts {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[
            "variant",
            "all: median",
            "of minima",
            "beyond the records: median",
            "of minima",
            "profiler: median",
            "of minima",
        ]);
        for cost in &self.costs {
            let columns = [Some(cost.all), cost.beyond_records, cost.profiled];
            let name = std::iter::once(cost.name.clone());
            table.row(name.chain(columns.into_iter().flat_map(both)));
        }
        writeln!(f, "{}", self.placement)?;
        writeln!(f, "{table}")
    }
}

impl Half {
    fn show_costs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.costs.iter().try_for_each(|placed| placed.show(f))
    }

    fn show_calls(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["variant", "allocations", "in calls", "driver calls, each"]);
        for (heap, driver) in self.allocations.iter().zip(&self.calls) {
            let calls = driver.per_call.iter();
            let calls: Vec<_> = calls.map(|(entry, n)| format!("{n} {entry}")).collect();
            table.row([
                heap.name.clone(),
                heap.blocks.to_string(),
                heap.calls.to_string(),
                calls.join(", "),
            ]);
        }
        writeln!(
            f,
            "allocations and driver calls of a measured call, on its thread"
        )?;
        writeln!(f, "{table}")
    }

    fn show_sustained(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[
            "without a pause",
            "calls/s",
            "ns/call",
            "two records",
            "without GPU time",
            "background threads",
            "event pairs",
            "reasons",
        ]);
        for row in &self.sustained {
            let lost: u64 = row.lost.values().sum();
            let reasons = row.lost.iter().map(|(why, calls)| format!("{why} {calls}"));
            let wanted = match row.wanted_per_second {
                Some(rate) => format!("{rate}/s, {} at once", row.burst),
                None => "as fast as possible".to_owned(),
            };
            table.row([
                wanted,
                format!("{:.0}", row.per_second),
                format!("{:.0}", row.nanoseconds),
                format!("{:.0}", row.records_nanoseconds),
                format!("{:.4} %", 100.0 * lost as f64 / row.calls as f64),
                format!("{:.1} %", 100.0 * row.background),
                row.pairs.to_string(),
                reasons.collect::<Vec<_>>().join(", "),
            ]);
        }
        writeln!(f, "GPU times lost during calls without a pause")?;
        writeln!(f, "{table}")
    }
}
