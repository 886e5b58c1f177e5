//! The kernels, copies and fills inside each scope.

mod fields;
mod gather;
mod names;
mod of_timeline;
mod row;
mod table;

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;

use super::options::TableOptions;
use super::row::Row;
use super::text::json::{array, lines, object, string};
use super::text::{Field, csv};
use super::verdict::Verdict;

pub(crate) use of_timeline::of_timeline;
pub use row::{CopyUse, FillUse, KernelRow, KernelRowKind, KernelUse, MinMax};

/// The kernels, copies and fills of a window by the scopes that launched them, from
/// [`KeyAverages::kernels`](super::KeyAverages::kernels).
///
/// Each kernel, copy and fill counts for the innermost measured scope around the call that launched it, so none counts
/// twice. Displays as two tables; [`table`](Self::table) takes options, and [`to_json`](Self::to_json) and
/// [`to_csv`](Self::to_csv) return the same numbers for programs.
///
/// # Examples
///
/// ```
/// # let timeline = profiler_report::Timeline::default();
/// let kernels = timeline.key_averages().kernels();
/// println!("{kernels}");
/// for scope in &kernels.scopes {
///     for row in &scope.rows {
///         println!("{} ran {} times, {:.0} ns each", row.name, row.times.calls, row.times.mean_ns);
///     }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Kernels {
    /// `true` if kernels were recorded.
    pub is_recorded: bool,
    /// The scopes that launched work, those whose work took longest first; last the work that no measured scope
    /// launched.
    pub scopes: Vec<ScopeKernels>,
    /// How long kernels were not recorded while the rest was, in nanoseconds, added up over the processes. No share of a
    /// device's time contains it.
    pub unrecorded_ns: f64,
    /// The number of processes.
    pub(crate) processes: usize,
    /// The notes below the table.
    pub(crate) notes: Vec<String>,
}

/// The kernels, copies and fills that the calls of one scope launched.
///
/// Times are in nanoseconds. A time in which a device was idle, by the rules of [`GpuIdle`](crate::GpuIdle), counts for the
/// scope whose work ended it, from the beginning of the call on: for the call that the device waited for.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ScopeKernels {
    /// The name of the scope; `None` for work that no measured scope launched.
    pub scope: Option<String>,
    /// The calls of the scope in the window that began while kernels were recorded, also those that launched nothing.
    pub calls: u64,
    /// The calls of CUDA in those calls that launched work, if they were recorded. A graph is launched once, whatever is in
    /// it.
    pub launches: Option<u64>,
    /// How long any of the work ran, on all devices.
    pub busy_ns: f64,
    /// How long copies and fills ran, and no kernel of the scope. It is in `busy_ns`.
    pub copy_ns: f64,
    /// How long devices were idle before the work, since the call began; `None` if launches were not recorded.
    pub idle_ns: Option<f64>,
    /// The part of `idle_ns` in which the next work had not been launched; `None` if launches were not recorded.
    pub launch_gap_ns: Option<f64>,
    /// One row for each kernel, and for each direction of copies; the longest total first.
    pub rows: Vec<KernelRow>,
}

impl ScopeKernels {
    /// Returns the calls of CUDA that launched work, for each call of the scope. `None` if launches were not recorded, and
    /// for work that no measured scope launched.
    #[must_use]
    pub fn launches_per_call(&self) -> Option<f64> {
        let launches = self.launches.filter(|_| self.scope.is_some())?;
        (self.calls > 0).then(|| launches as f64 / self.calls as f64)
    }

    /// Returns what limits the scope: see [`Verdict`]. `None` for work that no measured scope launched, and if launches were
    /// not recorded, which alone tell what a device waited for.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.scope.as_ref()?;
        if self.busy_ns > 0.0 {
            self.of_work()
        } else {
            None
        }
    }

    /// Returns the verdict for work with its times.
    fn of_work(&self) -> Option<Verdict> {
        let (idle_ns, launch_gap_ns) = (self.idle_ns?, self.launch_gap_ns?);
        if idle_ns >= self.busy_ns {
            return Some(if 2.0 * launch_gap_ns >= idle_ns {
                Verdict::LaunchBound
            } else {
                Verdict::GapBound
            });
        }
        Some(if 2.0 * self.copy_ns >= self.busy_ns {
            Verdict::CopyBound
        } else {
            Verdict::DeviceBound
        })
    }
}

/// The kernels of a window with the number of its rows, before any were filtered.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllKernels {
    pub(crate) kernels: Kernels,
    pub(crate) rows: usize,
}

impl AllKernels {
    /// Sets the verdict of each row whose calls launched work. There is one row for each name.
    pub(crate) fn judge(&self, rows: &mut [Row]) {
        let scopes = self.kernels.scopes.iter();
        let verdicts = scopes.filter_map(|scope| Some((scope.scope.as_deref()?, scope.verdict()?)));
        let verdicts: HashMap<&str, Verdict> = verdicts.collect();
        for row in rows {
            row.work_verdict = verdicts.get(&*row.name).copied();
        }
    }
}

impl Kernels {
    /// Returns two tables: what each scope did with the device, and below the kernels and copies by scope.
    ///
    /// The order of the second one is that of the totals, or by the GPU times, the calls or the names that
    /// [`sort_by`](TableOptions::sort_by) sets; [`statistics`](TableOptions::statistics) adds minimum, median and maximum.
    #[must_use]
    pub fn table(&self, options: impl Borrow<TableOptions>) -> String {
        table::render(self, options.borrow())
    }

    /// Returns all numbers as a JSON object: times in nanoseconds, memory in bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        object([
            Field::raw("is_recorded", self.is_recorded),
            Field::nanoseconds("unrecorded_ns", self.unrecorded_ns),
            Field::raw("notes", array(self.notes.iter().map(|note| string(note)))),
            Field::raw("scopes", lines(self.scopes.iter().map(fields::scope_json))),
        ]) + "\n"
    }

    /// Returns the rows as CSV with a header line: times in nanoseconds, memory in bytes. Each line has the values of its
    /// scope too.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let scope = ScopeKernels::default();
        let header = csv::header(&fields::columns(&scope, &KernelRow::default()));
        let scopes = self.scopes.iter();
        let rows = scopes.flat_map(|scope| scope.rows.iter().map(move |row| (scope, row)));
        let lines = rows.map(|(scope, row)| csv::line(&fields::columns(scope, row)));
        std::iter::once(header).chain(lines).collect()
    }
}

impl fmt::Display for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(TableOptions::for_display(f)))
    }
}
