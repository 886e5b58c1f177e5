//! Summaries: a snapshot of everything measured so far, with a row for each name.

mod file;
mod format;
mod json;
mod notes;
mod schema;
mod table;
#[cfg(all(test, feature = "serde"))]
mod tests;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

pub use self::file::write;
#[cfg(feature = "export")]
pub(crate) use self::format::for_cuda;
pub use self::format::{SummaryFileError, SummaryFormat, second_file};
pub use self::schema::Schema;
use super::averages::KeyAverages;
use super::call_tree::CallTree;
use super::callers::{CallEdge, CallEdges, Side};
use super::environment::Environment;
use super::fields;
use super::group_by::GroupBy;
use super::options::{RowLimit, TableOptions};
use super::own_cost::OwnCost;
use super::restrict::{Restriction, RestrictionError, restrict};
use super::row::Row;
use super::sampled_gpu::SampledGpu;
use super::sampled_idle::SampledIdle;
use super::sort::{SortKey, SortKeyError, sort_again};
use crate::cuda_health::CudaHealth;
use crate::losses::{DropReason, SpanLoss};
use crate::name;

/// A snapshot of everything measured so far.
///
/// Displays as a table; [`table`](Self::table) takes options. [`to_json`](Self::to_json) and [`to_csv`](Self::to_csv)
/// return the same numbers for programs. [`KeyAverages`] have the same methods.
///
/// No time is counted in two rows: self times exclude children, on the CPU and on each stream. A scope on another
/// thread is never a child.
///
/// # Examples
///
/// ```
/// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
/// let summary = summary();
/// if let Some(row) = summary.row("load") {
///     println!("{} calls of {}\n{summary}", row.calls, row.name);
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Summary {
    /// The version of the JSON, which comes first in it.
    #[cfg_attr(feature = "serde", serde(rename = "schema_version"))]
    #[doc(hidden)]
    pub schema: Schema,
    /// Where and how the times were measured.
    pub environment: Environment,
    /// One row for each name that was called, the longest total first. Names without a finished call come last.
    pub rows: Vec<Row>,
    /// The sum of all self times on the CPU in nanoseconds, including filtered rows; `None` if no call has finished.
    pub self_cpu_time_total_ns: Option<f64>,
    /// The sum of all self times on the GPU in nanoseconds, including filtered rows; `None` if there are no GPU times.
    pub self_cuda_time_total_ns: Option<f64>,
    /// Nanoseconds since the profiler was first used.
    pub wall_ns: f64,
    /// How often the file that it comes from is rewritten while the program runs
    /// (`Builder::summary_interval`), in nanoseconds; `None` in other summaries.
    pub interval_ns: Option<f64>,
    /// `true` if it was written at the end of the program: what it shows changes no more.
    pub is_last: bool,
    /// The largest relative error of the percentiles. All other times are as exact as the clock.
    pub percentile_error: f64,
    /// Log entries that their loggers accepted.
    pub delivered: u64,
    /// Log entries that were dropped, for each reason that occurred.
    #[cfg_attr(feature = "serde", serde(with = "crate::losses::reason::counts"))]
    pub dropped: Vec<(DropReason, u64)>,
    /// Delivered entries that their loggers could not save at the last flush. They are lost if the process ends before
    /// the loggers can.
    pub unsaved: u64,
    /// Log entries that had not reached their loggers: with those that were delivered or dropped, these are all.
    pub pending: u64,
    /// Calls missing from all rows because there was no memory for their statistics.
    pub unmeasured: u64,
    /// Calls missing from all rows because they were made while their thread was inside the profiler: by a signal handler
    /// that interrupted it, by a measured allocator, by a logger, or by the schedule of a session. Device times that are
    /// reported there count too, except by a logger.
    pub refused: u64,
    /// Spans of `tracing`, and times of spans, that no `ProfilerLayer` could measure, for each reason that occurred.
    #[cfg_attr(feature = "serde", serde(with = "crate::losses::reason::counts"))]
    pub lost_spans: Vec<(SpanLoss, u64)>,
    /// Warnings that were emitted, each once: invalid variables, loggers that failed.
    pub notices: Vec<String>,
    /// The state of GPU measurement.
    pub cuda: CudaHealth,
    /// The devices that were sampled (`Builder::gpu_samples`); empty if none were.
    pub gpus: Vec<SampledGpu>,
    /// What each device did, and which functions kept it waiting; empty if there were no GPU times, or
    /// `PROFILER_GPU_IDLE=0` turned it off.
    pub gpu_idle: Vec<SampledIdle>,
    /// The cost of the profiler itself.
    pub own_cost: OwnCost,
    /// Why there are no rows, and what to do about it; `None` if there are rows.
    pub nothing_measured: Option<String>,
    /// The calls by path, if callers were counted.
    #[cfg_attr(feature = "serde", serde(with = "super::call_tree::compact"))]
    #[doc(hidden)]
    pub call_tree: Option<Arc<CallTree>>,
    /// Samples of devices that are missing, and how the rows were sorted and filtered, as far as the table says it.
    #[doc(hidden)]
    pub notes: Vec<String>,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub row_limit: Option<RowLimit>,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}

/// Returns the processor time of the calls. For a name with futures and other calls, the statistics do not separate the
/// two; the time of the polls is the better bound.
pub fn busy(row: &Row) -> f64 {
    let (total, own) = row
        .cpu
        .map_or((0.0, 0.0), |cpu| (cpu.total_ns, cpu.self_ns));
    if row.futures == 0 {
        total
    } else {
        row.polled_ns.max(own).min(total)
    }
}

impl Summary {
    /// Returns the row of a name.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        let name = &*name::truncate(name);
        self.rows.iter().find(|row| row.name == name)
    }

    /// Sorts the rows, largest first (names from A to Z). Rows without a value come last; rows with equal values are
    /// sorted by name.
    ///
    /// The key is a [`SortKey`] or its name. If the name is not valid, the rows keep their order, the table says so, and
    /// a warning is emitted once.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_report::TableOptions;
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// println!("{}", summary().sort_by("self_cuda_time_total").table(TableOptions::new().width(100)));
    /// ```
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
    /// println!("{}", summary().sort_by("self_cuda_time_total").row_limit(10));
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
    /// Percentages and sums still refer to all rows.
    ///
    /// # Errors
    ///
    /// Returns an error if the regular expression is invalid or the fraction is not between 0 and 1.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// let most_called = summary().sort_by("count").restrict("^model::")?.restrict(10)?;
    /// assert!(most_called.rows.len() <= 10);
    /// # Ok::<(), profiler_report::RestrictionError>(())
    /// ```
    pub fn restrict(mut self, to: impl Into<Restriction>) -> Result<Self, RestrictionError> {
        self.notes.extend(restrict(&mut self.rows, &to.into())?);
        Ok(self)
    }

    /// Returns the callers of the functions in these rows.
    #[must_use]
    pub fn callers(&self) -> CallEdges {
        CallEdges::of(&self.rows, self.edges().as_deref(), Side::Callers)
    }

    /// Returns the functions called by the functions in these rows.
    #[must_use]
    pub fn callees(&self) -> CallEdges {
        CallEdges::of(&self.rows, self.edges().as_deref(), Side::Callees)
    }

    /// Returns the calls by path, with their times on the CPU and on the GPU.
    ///
    /// The running statistics count paths only with `PROFILER_CALLERS=1` or
    /// `Builder::callers`. Otherwise each of these rows is a node without a caller.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// let tree = summary().call_tree();
    /// for (index, node) in (0..).zip(&tree.nodes) {
    ///     let path: Vec<&str> = tree.path(index).iter().map(|at| &*tree.nodes[*at as usize].name).collect();
    ///     println!("{}: {} calls", path.join(" > "), node.calls);
    /// }
    /// ```
    #[must_use]
    pub fn call_tree(&self) -> CallTree {
        let counted = self.call_tree.as_deref().cloned();
        #[allow(clippy::cast_possible_truncation, reason = "whole nanoseconds")]
        CallTree {
            start_unix_ns: self.environment.start_unix_ns,
            duration_ns: self.wall_ns as i64,
            ..counted.unwrap_or_else(|| CallTree::of_rows(&self.rows))
        }
    }

    /// Returns all pairs of caller and callee, if callers were counted.
    pub(super) fn edges(&self) -> Option<Arc<[CallEdge]>> {
        self.call_tree.as_deref().map(CallTree::called_edges)
    }

    /// Returns the running statistics as key averages, with torch's columns. They have no shapes and no memory, and
    /// percentiles only to [`percentile_error`](Self::percentile_error); a `Trace` has all of these.
    #[must_use]
    pub fn key_averages(&self) -> KeyAverages {
        let is_averaged = |row: &&Row| row.cpu.is_some() || row.cuda.is_some();
        KeyAverages {
            rows: self.rows.iter().filter(is_averaged).cloned().collect(),
            self_cpu_time_total_ns: self.self_cpu_time_total_ns,
            self_cuda_time_total_ns: self.self_cuda_time_total_ns,
            row_limit: self.row_limit,
            by: GroupBy::new(),
            edges: self.edges(),
            gpus: self.gpus.clone(),
            kernels: None,
            notes: notes::of_averages(self),
        }
    }

    /// Returns the table, with the order, limit and width that `options` set.
    #[must_use]
    pub fn table(&self, options: impl Borrow<TableOptions>) -> String {
        table::render(self, &options.borrow().or_row_limit(self.row_limit))
    }

    /// Returns all numbers as a JSON object: times in nanoseconds, with one decimal.
    ///
    /// With the feature `serde`, a summary can be read from it again. The key `schema_version` is 1; new keys do not
    /// change it.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::render(self)
    }

    /// Returns the rows as CSV with a header line: times in nanoseconds.
    #[must_use]
    pub fn to_csv(&self) -> String {
        fields::to_csv(&self.rows)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(TableOptions::for_display(f)))
    }
}
