//! Key averages: all calls of a name in one row, as `torch.profiler` has them.

mod call_table;
mod callers;
mod cells;
mod columns;
mod csv;
mod gather;
mod group;
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
pub use group::GroupBy;
pub use restrict::{Restriction, RestrictionError};
pub use row::{AverageMemory, AverageRow};
pub use sort::{SortKey, SortKeyError};
pub use table::AveragesTable;
pub use times::AverageTimes;

/// The calls of a [`Trace`] or of a [`Summary`], averaged over all of the same name.
///
/// It displays as a table; [`table`](Self::table) takes options. [`restrict`](Self::restrict) leaves out rows,
/// [`callers`](Self::callers) and [`callees`](Self::callees) say who called whom, [`to_json`](Self::to_json) and
/// [`to_csv`](Self::to_csv) give the same numbers to programs.
///
/// No time is counted in two rows: self times are without what was called, on the CPU as on each stream, and those
/// of all rows add up to what all scopes took that are in no other one. A total counts a recursive frame once. What
/// runs on another thread is nobody's child. A future's self time is what its polls took.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{AveragesTable, SortKey, scope, summary};
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
/// # Ok::<(), profiler_runtime::RestrictionError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyAverages {
    /// One row for each name, or name with shapes or stack; the longest total first.
    pub rows: Vec<AverageRow>,
    /// The self times of all rows on the CPU in nanoseconds, of those too that were left out; none where CPU times
    /// were not recorded.
    pub self_cpu_time_total_ns: Option<f64>,
    /// The same on the GPU; none where there are no GPU times.
    pub self_cuda_time_total_ns: Option<f64>,
    by: GroupBy,
    edges: Option<Arc<[CallEdge]>>,
    /// What there is to say under the table.
    notes: Vec<String>,
}

impl KeyAverages {
    /// Sorts the rows, the largest first (names from A to Z); rows without a value are the last, and rows with the
    /// same value are sorted by name.
    #[must_use]
    pub fn sort_by(mut self, key: SortKey) -> Self {
        sort::sort(&mut self.rows, key);
        self
    }

    /// Leaves out rows, as `pstats` does: a number keeps so many of the first rows, a fraction such a part of them,
    /// a regular expression those whose name it is found in. They can be chained, and are applied in that order.
    ///
    /// Per cents and the times under the table stay those of all rows.
    ///
    /// # Errors
    ///
    /// A regular expression that cannot be read, and a fraction that is not between 0 and 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{SortKey, summary};
    ///
    /// let averages = summary().key_averages().sort_by(SortKey::Count);
    /// let most_called = averages.restrict("^model::")?.restrict(0.5)?.restrict(10)?;
    /// assert!(most_called.rows.len() <= 10);
    /// # Ok::<(), profiler_runtime::RestrictionError>(())
    /// ```
    pub fn restrict(self, to: impl Into<Restriction>) -> Result<Self, RestrictionError> {
        restrict::restrict(self, &to.into())
    }

    /// Who called the functions of these rows.
    #[must_use]
    pub fn callers(&self) -> CallEdges {
        CallEdges::callers(self)
    }

    /// Whom the functions of these rows called.
    #[must_use]
    pub fn callees(&self) -> CallEdges {
        CallEdges::callees(self)
    }

    /// The table, sorted, limited and with the columns that `options` say.
    ///
    /// Columns without any value are left out: those of the GPU where there are no GPU times, memory where it was
    /// not profiled, shapes and source where rows are not grouped by them.
    #[must_use]
    pub fn table(&self, options: &AveragesTable) -> String {
        table::render(self, options)
    }

    /// All numbers as a JSON object: times in nanoseconds, memory in bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::render(self)
    }

    /// The rows as CSV with a header line: times in nanoseconds, memory in bytes.
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
    /// The scopes of the window, averaged over all of the same name.
    #[must_use]
    pub fn key_averages(&self) -> KeyAverages {
        gather::gather(self, GroupBy::new())
    }

    /// The same, with calls told apart by their input shapes, or by the scopes around them.
    #[must_use]
    pub fn key_averages_by(&self, by: GroupBy) -> KeyAverages {
        gather::gather(self, by)
    }
}

impl Summary {
    /// The running statistics as key averages. They know neither shapes and memory nor who called whom, and
    /// percentiles to [`percentile_error`](Self::percentile_error) only: a [`Trace`] does.
    #[must_use]
    pub fn key_averages(&self) -> KeyAverages {
        of_summary::of_summary(self)
    }
}
