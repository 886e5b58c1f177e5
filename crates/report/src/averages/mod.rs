//! Key averages: all calls of a name in one row, as in `torch.profiler`.

mod group;
mod nesting;
mod of_timeline;
mod table;
mod tally;
mod unlinked;
mod unnamed;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use super::callers::{CallEdge, CallEdges, Side};
use super::fields;
use super::group_by::GroupBy;
use super::kernels::{AllKernels, Kernels};
use super::options::{RowLimit, TableOptions};
use super::restrict::{Restriction, RestrictionError, restrict};
use super::row::Row;
use super::sampled_gpu::SampledGpu;
use super::sort::{SortKey, SortKeyError, sort_again};
use super::text::json::{array, lines, object, string};
use super::text::{Field, nanoseconds};
use crate::name;

pub use of_timeline::missing;
#[cfg(feature = "export")]
pub(crate) use of_timeline::of_devices;
pub use of_timeline::{Measured, gather};

/// The calls of a `Trace`, a [`Timeline`](super::Timeline) or a [`Summary`](crate::Summary), averaged over
/// all calls of the same name.
///
/// Displays as a table; [`table`](Self::table) takes options. [`restrict`](Self::restrict) filters rows,
/// [`callers`](Self::callers) and [`callees`](Self::callees) return the call graph, and [`to_json`](Self::to_json) and
/// [`to_csv`](Self::to_csv) return the same numbers for programs.
///
/// No time is counted in two rows: self times exclude children, on the CPU and on each stream, and the self times of
/// all rows add up to the time of all outermost scopes. A total counts a recursive call once. A scope on another thread
/// is a child only if a `Handle` makes it one; then the instants in which such children run and the
/// parent's own thread waits are in the children's self times. The self time of a future is the time of its polls.
///
/// # Examples
///
/// ```
/// use profiler_report::{SortKey, TableOptions};
/// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
/// let averages = summary().key_averages();
/// println!("{}", averages.table(TableOptions::new().sort_by(SortKey::SelfCpuTimeTotal).row_limit(10)));
///
/// let model = averages.restrict("^model::")?.restrict(2)?;
/// assert!(model.rows.len() <= 2);
/// # Ok::<(), profiler_report::RestrictionError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyAverages {
    /// One row for each name, or for each name with its shapes or stack; the longest total first.
    pub rows: Vec<Row>,
    /// The sum of all self times on the CPU in nanoseconds, including filtered rows; `None` if CPU times were not
    /// recorded.
    pub self_cpu_time_total_ns: Option<f64>,
    /// The sum of all self times on the GPU in nanoseconds, including filtered rows; `None` if there are no GPU times.
    pub self_cuda_time_total_ns: Option<f64>,
    /// The devices that were sampled (`Builder::gpu_samples`); empty if none were.
    pub gpus: Vec<SampledGpu>,
    pub(crate) row_limit: Option<RowLimit>,
    pub(crate) by: GroupBy,
    pub(crate) edges: Option<Arc<[CallEdge]>>,
    /// The kernels of all rows, if they were recorded.
    pub(crate) kernels: Option<Arc<AllKernels>>,
    /// The notes below the table.
    #[doc(hidden)]
    pub notes: Vec<String>,
}

impl KeyAverages {
    /// Sorts the rows, largest first (names from A to Z). Rows without a value come last; rows with equal values are
    /// sorted by name.
    ///
    /// The key is a [`SortKey`] or its name. If the name is not valid, the rows keep their order, the table says so, and
    /// a warning is emitted once.
    #[must_use]
    pub fn sort_by(mut self, key: impl TryInto<SortKey, Error: Into<SortKeyError>>) -> Self {
        let key = key.try_into().map_err(Into::into);
        sort_again(&mut self.rows, &mut self.notes, key);
        self
    }

    /// Sets how many rows the table shows at most, as [`TableOptions::row_limit`] does, which has precedence. The rows
    /// themselves stay, and so do JSON and CSV; [`restrict`](Self::restrict) removes rows.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// println!("{}", summary().key_averages().sort_by("self_cuda_time_total").row_limit(10));
    /// ```
    #[must_use]
    pub fn row_limit(mut self, rows: impl Into<RowLimit>) -> Self {
        self.row_limit = Some(rows.into());
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
    /// use profiler_report::SortKey;
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// let averages = summary().key_averages().sort_by(SortKey::Count);
    /// let most_called = averages.restrict("^model::")?.restrict(0.5)?.restrict(10)?;
    /// assert!(most_called.rows.len() <= 10);
    /// # Ok::<(), profiler_report::RestrictionError>(())
    /// ```
    pub fn restrict(mut self, to: impl Into<Restriction>) -> Result<Self, RestrictionError> {
        self.notes.extend(restrict(&mut self.rows, &to.into())?);
        Ok(self)
    }

    /// Returns the row of a name: the first one, if rows are grouped further.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        let name = &*name::truncate(name);
        self.rows.iter().find(|row| row.name == name)
    }

    /// Returns the kernels, copies and fills that the calls of these rows launched themselves, without those of scopes
    /// inside. If no row was filtered, the work that no measured scope launched comes last.
    ///
    /// Nothing is recorded in the averages of a [`Summary`](super::Summary), and where CUPTI is missing.
    #[must_use]
    pub fn kernels(&self) -> Kernels {
        let Some(all) = &self.kernels else {
            return Kernels::default();
        };
        let is_whole = self.rows.len() == all.rows;
        let is_kept = |name: &str| self.rows.iter().any(|row| row.name == name);
        let scopes = all.kernels.scopes.iter();
        let scopes = scopes.filter(|scope| match &scope.scope {
            Some(name) => is_whole || is_kept(name),
            None => is_whole,
        });
        Kernels {
            scopes: scopes.cloned().collect(),
            ..all.kernels.clone()
        }
    }

    /// Returns the callers of the functions in these rows.
    #[must_use]
    pub fn callers(&self) -> CallEdges {
        CallEdges::of(&self.rows, self.edges.as_deref(), Side::Callers)
    }

    /// Returns the functions called by the functions in these rows.
    #[must_use]
    pub fn callees(&self) -> CallEdges {
        CallEdges::of(&self.rows, self.edges.as_deref(), Side::Callees)
    }

    /// Returns the table, with the order, the limit and the columns that `options` set.
    ///
    /// Columns without any value are left out: those of the GPU if there are no GPU times, memory if it was not
    /// profiled, shapes and source if rows are not grouped by them.
    #[must_use]
    pub fn table(&self, options: impl Borrow<TableOptions>) -> String {
        table::render(self, &options.borrow().or_row_limit(self.row_limit))
    }

    /// Returns all numbers as a JSON object: times in nanoseconds, memory in bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        let total = |key, ns: Option<f64>| Field::optional(key, ns.map(nanoseconds));
        let notes = array(self.notes.iter().map(|note| string(note)));
        object([
            total("self_cpu_time_total_ns", self.self_cpu_time_total_ns),
            total("self_cuda_time_total_ns", self.self_cuda_time_total_ns),
            Field::raw("gpus", array(self.gpus.iter().map(SampledGpu::to_json))),
            Field::raw("notes", notes),
            Field::raw("rows", lines(self.rows.iter().map(fields::to_json))),
        ]) + "\n"
    }

    /// Returns the rows as CSV with a header line: times in nanoseconds, memory in bytes.
    #[must_use]
    pub fn to_csv(&self) -> String {
        fields::to_csv(&self.rows)
    }
}

impl fmt::Display for KeyAverages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(TableOptions::for_display(f)))
    }
}
