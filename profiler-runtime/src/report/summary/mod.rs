//! Summaries: a snapshot of everything measured so far, with a row for each name.

mod columns;
mod csv;
mod cuda_times;
mod fields;
mod json;
mod notes;
mod row;
mod table;
mod units;

use std::fmt;

use crate::clock::clock;
use crate::collect;
use crate::cuda::{self, CudaHealth};
use crate::diagnostics::{self, DropReason};
use crate::name;
use crate::report::own_cost::{self, OwnCost};
use crate::switch::{is_enabled, with_control};

pub use cuda_times::{CudaTimes, Verdict};
pub use row::Row;
pub use table::{SortBy, TableOptions};

/// A snapshot of everything measured so far.
///
/// Displays as a table; [`table`](Self::table) takes options. [`to_json`](Self::to_json) and [`to_csv`](Self::to_csv)
/// return the same numbers for programs.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{scope, summary};
///
/// for _ in 0..3 {
///     let _scope = scope!("load");
/// }
/// let summary = summary();
/// if let Some(row) = summary.row("load") {
///     assert_eq!(row.calls, 3);
///     println!("{summary}");
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// One row for each name that was called, the longest total first. Names without a finished call come last.
    pub rows: Vec<Row>,
    /// Nanoseconds since the profiler was first used.
    pub wall_ns: f64,
    /// The largest relative error of the percentiles. All other times are as exact as the clock.
    pub percentile_error: f64,
    /// Log entries that their loggers accepted.
    pub delivered: u64,
    /// Log entries that were dropped, for each reason that occurred.
    pub dropped: Vec<(DropReason, u64)>,
    /// Delivered entries that their loggers could not save at the last flush. They are lost if the process ends before
    /// the loggers can.
    pub unsaved: u64,
    /// Calls missing from all rows because there was no memory for their statistics.
    pub unmeasured: u64,
    /// Warnings that were emitted, each once: invalid variables, loggers that failed.
    pub notices: Vec<String>,
    /// The state of GPU measurement.
    pub cuda: CudaHealth,
    /// The cost of the profiler itself.
    pub own_cost: OwnCost,
    /// Why there are no rows, and what to do about it; `None` if there are rows.
    pub nothing_measured: Option<String>,
}

/// Takes a snapshot of everything measured so far, on all threads.
///
/// Measured threads continue while the snapshot is taken: a call that ends at that time may be counted in one column
/// and not yet in another. Calls that ended earlier on the same thread, or on threads that were joined, are complete.
pub fn summary() -> Summary {
    let mut rows: Vec<Row> = name::all().into_iter().filter_map(Row::of).collect();
    rows.sort_by(|left, right| right.total_ns.total_cmp(&left.total_ns));
    let wall_ns = clock().nanoseconds(clock().since_origin() as f64);
    for row in &mut rows {
        row.wall_share = row.total_ns / wall_ns.max(1.0);
    }
    let ring_full: u64 = rows.iter().map(|row| row.dropped_entries).sum();
    let dropped = DropReason::ALL
        .into_iter()
        .map(|reason| {
            let in_rows = if reason == DropReason::RingFull {
                ring_full
            } else {
                0
            };
            (reason, diagnostics::dropped(reason) + in_rows)
        })
        .filter(|(_, entries)| *entries > 0)
        .collect();
    Summary {
        cuda: cuda::health(),
        own_cost: own_cost::of(&rows, wall_ns),
        nothing_measured: rows.is_empty().then(why_nothing),
        rows,
        wall_ns,
        percentile_error: crate::stats::RELATIVE_ERROR,
        delivered: collect::taken(),
        dropped,
        unsaved: collect::unsaved(),
        unmeasured: diagnostics::unmeasured(),
        notices: diagnostics::notices(),
    }
}

fn why_nothing() -> String {
    if cfg!(feature = "strip") {
        return "profiling is stripped from this build: build without profiler-runtime's feature \
                `strip`"
            .to_owned();
    }
    if !is_enabled() {
        return "profiling is off: set PROFILER_ENABLED=1, or call set_enabled(true)".to_owned();
    }
    let seen = name::all().len();
    let filter = with_control(|control| control.settings.filter.text().to_owned());
    if seen > 0 && !filter.is_empty() {
        return format!(
            "the filter `{filter}` leaves nothing of the {seen} names that ran: widen \
             PROFILER_FILTER"
        );
    }
    if seen > 0 {
        return "all that is annotated was bypassed".to_owned();
    }
    "nothing that is annotated has run: put #[measure_execution_time] on a function that does"
        .to_owned()
}

impl Summary {
    /// Returns the row of a name.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        let name = &*name::truncate(name);
        self.rows.iter().find(|row| row.name == name)
    }

    /// Returns the table, with the order, limit and width that `options` set.
    #[must_use]
    pub fn table(&self, options: &TableOptions) -> String {
        table::render(self, options)
    }

    /// Returns all numbers as a JSON object: times in nanoseconds, shares as fractions.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::render(self)
    }

    /// Returns the rows as CSV with a header line: times in nanoseconds, shares as fractions.
    #[must_use]
    pub fn to_csv(&self) -> String {
        csv::render(self)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(&TableOptions::default()))
    }
}
