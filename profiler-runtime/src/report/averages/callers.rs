//! The call graph.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::{KeyAverages, call_table, csv, json};

/// The calls of one function from another one.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CallEdge {
    /// The caller; `None` for scopes without a parent in the window.
    pub caller: Option<String>,
    /// The function that was called.
    pub callee: String,
    /// All such calls, including those made while another such call was open.
    pub calls: u64,
    /// Calls made while no other such call was open.
    pub primitive_calls: u64,
    /// The callee's times on the CPU in these calls, if they were recorded.
    pub cpu: Option<EdgeTimes>,
    /// The callee's times on the GPU in these calls, if there are any.
    pub cuda: Option<EdgeTimes>,
}

/// The times of a callee when one caller called it, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EdgeTimes {
    /// The time of primitive calls including children, so that a recursive call counts once; `pstats` calls it
    /// cumulative.
    pub total_ns: f64,
    /// The time of all calls without their children.
    pub self_ns: f64,
}

impl CallEdge {
    /// The value that edges are sorted by.
    fn total(&self) -> (f64, f64) {
        let of = |times: &Option<EdgeTimes>| times.map_or(0.0, |times| times.total_ns);
        (of(&self.cpu), of(&self.cuda))
    }
}

/// The callers of the functions of some [`KeyAverages`], or the functions they called.
///
/// Displays as a table, function by function in the order of the rows, the longest total first. Running statistics have
/// no call graph: there are no edges then, and the table says so.
///
/// # Examples
///
/// ```no_run
/// # fn handler(trace: &profiler_runtime::Trace) -> Result<(), profiler_runtime::report::RestrictionError> {
/// let averages = trace.key_averages().restrict("attention")?;
/// println!("{}", averages.callers());
/// for edge in &averages.callees().edges {
///     println!("{} calls {} {} times", edge.caller.as_deref().unwrap_or("-"), edge.callee, edge.calls);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CallEdges {
    /// Sorted by function, then by total.
    pub edges: Vec<CallEdge>,
    pub(super) side: Side,
    /// `true` if the averages come from a source without a call graph.
    pub(super) is_unknown: bool,
}

/// Which side of the edges the rows are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Callers,
    Callees,
}

impl Side {
    /// Returns the function of an edge that is a row.
    pub(super) fn function(self, edge: &CallEdge) -> Option<&str> {
        match self {
            Self::Callers => Some(&edge.callee),
            Self::Callees => edge.caller.as_deref(),
        }
    }

    /// Returns the function at the other end of an edge.
    pub(super) fn other(self, edge: &CallEdge) -> Option<&str> {
        match self {
            Self::Callers => edge.caller.as_deref(),
            Self::Callees => Some(&edge.callee),
        }
    }
}

impl CallEdges {
    pub(super) fn callers(averages: &KeyAverages) -> Self {
        Self::of(averages, Side::Callers)
    }

    pub(super) fn callees(averages: &KeyAverages) -> Self {
        Self::of(averages, Side::Callees)
    }

    fn of(averages: &KeyAverages, side: Side) -> Self {
        let mut by_function: HashMap<&str, Vec<&CallEdge>> = HashMap::new();
        for edge in averages.edges.iter().flat_map(|edges| edges.iter()) {
            if let Some(function) = side.function(edge) {
                by_function.entry(function).or_default().push(edge);
            }
        }
        let mut edges = Vec::new();
        let mut seen = HashSet::new();
        for row in averages.rows.iter().filter(|row| seen.insert(&row.name)) {
            let mut of_row = by_function.remove(row.name.as_str()).unwrap_or_default();
            of_row.sort_by(|left, right| {
                let (left_total, right_total) = (left.total(), right.total());
                let cpu = right_total.0.total_cmp(&left_total.0);
                let cuda = right_total.1.total_cmp(&left_total.1);
                let name = side.other(left).cmp(&side.other(right));
                cpu.then(cuda).then(name)
            });
            edges.extend(of_row.into_iter().cloned());
        }
        Self {
            edges,
            side,
            is_unknown: averages.edges.is_none(),
        }
    }

    /// Returns the edges as a JSON array: times in nanoseconds.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::edges(self)
    }

    /// Returns the edges as CSV with a header line: times in nanoseconds.
    #[must_use]
    pub fn to_csv(&self) -> String {
        csv::edges(self)
    }
}

impl fmt::Display for CallEdges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&call_table::render(self))
    }
}
