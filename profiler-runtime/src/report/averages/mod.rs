//! Key averages: all calls of a name in one row, as in `torch.profiler`.

mod call_table;
mod callers;
mod cells;
mod columns;
mod csv;
mod fields;
mod gather;
mod group;
mod group_by;
mod interner;
mod json;
mod memory;
mod nesting;
mod of_summary;
mod restrict;
mod row;
mod share;
mod sort;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod times;

use std::fmt;
use std::sync::Arc;

use crate::report::summary::Summary;
use crate::session::Trace;

pub use callers::{CallEdge, CallEdges, EdgeTimes};
pub use group_by::GroupBy;
pub use restrict::{Restriction, RestrictionError};
pub use row::{AverageMemory, AverageRow};
pub use sort::{SortKey, SortKeyError};
pub use table::AveragesTable;
pub use times::AverageTimes;

/// The calls of a [`Trace`] or of a [`Summary`], averaged over all calls of the same name.
///
/// Displays as a table; [`table`](Self::table) takes options. [`restrict`](Self::restrict) filters rows,
/// [`callers`](Self::callers) and [`callees`](Self::callees) return the call graph, and [`to_json`](Self::to_json) and
/// [`to_csv`](Self::to_csv) return the same numbers for programs.
///
/// No time is counted in two rows: self times exclude children, on the CPU and on each stream, and the self times of
/// all rows add up to the time of all outermost scopes. A total counts a recursive call once. A scope on another thread
/// is never a child. The self time of a future is the time of its polls.
///
/// # Examples
///
/// ```
/// use profiler_runtime::report::{AveragesTable, SortKey};
/// use profiler_runtime::{scope, summary};
///
/// for batch in 0..3 {
///     let _scope = scope!("model::forward");
///     let _scope = scope!(if batch == 0 { "model::embed" } else { "model::attend" });
/// }
/// let averages = summary().key_averages();
/// println!("{}", averages.table(&AveragesTable::new().sort_by(SortKey::SelfCpuTimeTotal).row_limit(10)));
///
/// let model = averages.restrict("^model::")?.restrict(2)?;
/// assert!(model.rows.len() <= 2);
/// # Ok::<(), profiler_runtime::report::RestrictionError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyAverages {
    /// One row for each name, or for each name with its shapes or stack; the longest total first.
    pub rows: Vec<AverageRow>,
    /// The sum of all self times on the CPU in nanoseconds, including filtered rows; `None` if CPU times were not
    /// recorded.
    pub self_cpu_time_total_ns: Option<f64>,
    /// The sum of all self times on the GPU in nanoseconds, including filtered rows; `None` if there are no GPU times.
    pub self_cuda_time_total_ns: Option<f64>,
    by: GroupBy,
    edges: Option<Arc<[CallEdge]>>,
    /// The notes below the table.
    notes: Vec<String>,
}

impl KeyAverages {
    /// Sorts the rows, largest first (names from A to Z). Rows without a value come last; rows with equal values are
    /// sorted by name.
    #[must_use]
    pub fn sort_by(mut self, key: SortKey) -> Self {
        sort::sort(&mut self.rows, key);
        self
    }

    /// Filters rows, as `pstats` does: an integer keeps that many of the first rows, a fraction keeps that part of
    /// them, and a regular expression keeps the rows whose name it matches. Calls can be chained and are applied in
    /// order.
    ///
    /// Percentages and the sums below the table still refer to all rows.
    ///
    /// # Errors
    ///
    /// Returns an error if the regular expression is invalid or the fraction is not between 0 and 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::report::SortKey;
    /// use profiler_runtime::summary;
    ///
    /// let averages = summary().key_averages().sort_by(SortKey::Count);
    /// let most_called = averages.restrict("^model::")?.restrict(0.5)?.restrict(10)?;
    /// assert!(most_called.rows.len() <= 10);
    /// # Ok::<(), profiler_runtime::report::RestrictionError>(())
    /// ```
    pub fn restrict(self, to: impl Into<Restriction>) -> Result<Self, RestrictionError> {
        restrict::restrict(self, &to.into())
    }

    /// Returns the callers of the functions in these rows.
    #[must_use]
    pub fn callers(&self) -> CallEdges {
        CallEdges::callers(self)
    }

    /// Returns the functions called by the functions in these rows.
    #[must_use]
    pub fn callees(&self) -> CallEdges {
        CallEdges::callees(self)
    }

    /// Returns the table, with the order, the limit and the columns that `options` set.
    ///
    /// Columns without any value are left out: those of the GPU if there are no GPU times, memory if it was not
    /// profiled, shapes and source if rows are not grouped by them.
    #[must_use]
    pub fn table(&self, options: &AveragesTable) -> String {
        table::render(self, options)
    }

    /// Returns all numbers as a JSON object: times in nanoseconds, memory in bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::render(self)
    }

    /// Returns the rows as CSV with a header line: times in nanoseconds, memory in bytes.
    #[must_use]
    pub fn to_csv(&self) -> String {
        csv::render(self)
    }
}

impl fmt::Display for KeyAverages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(&AveragesTable::new()))
    }
}

impl Trace {
    /// Averages the scopes of the window over all calls of the same name.
    #[must_use]
    pub fn key_averages(&self) -> KeyAverages {
        gather::gather(self, GroupBy::new())
    }

    /// Averages the scopes of the window, with separate rows for different input shapes or enclosing scopes.
    #[must_use]
    pub fn key_averages_by(&self, by: GroupBy) -> KeyAverages {
        gather::gather(self, by)
    }
}

impl Summary {
    /// Returns the running statistics as key averages. They have no shapes, memory or call graph, and percentiles only
    /// to [`percentile_error`](Self::percentile_error); a [`Trace`] has all of these.
    #[must_use]
    pub fn key_averages(&self) -> KeyAverages {
        of_summary::of_summary(self)
    }
}
