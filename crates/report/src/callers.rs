//! The call graph.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::options::TableOptions;
use super::row::Row;
use super::text::json::{lines, object};
use super::text::{Field, csv, nanoseconds};
use crate::in_order::InOrder as _;

/// The caller of calls whose callers are too many to be counted one by one. In call trees, the node above the callers of paths
/// beyond the bound.
pub const OTHER_CALLERS: &str = "(other callers)";

/// The calls of one function from another one.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct EdgeTimes {
    /// The time of primitive calls including children, so that a recursive call counts once; `pstats` calls it
    /// cumulative.
    pub total_ns: f64,
    /// The time of all calls without their children.
    pub self_ns: f64,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}

impl CallEdge {
    /// The value that edges are sorted by.
    fn total(&self) -> (f64, f64) {
        let of = |times: &Option<EdgeTimes>| times.map_or(0.0, |times| times.total_ns);
        (of(&self.cpu), of(&self.cuda))
    }
}

/// The callers of the functions of a [`Summary`](super::Summary) or [`KeyAverages`](super::KeyAverages), or the functions they called.
///
/// Displays as a table, function by function in the order of the rows, the longest total first. The
/// running statistics count callers only with `PROFILER_CALLERS=1` or
/// `Builder::callers`; else there are no edges, and the table says so.
///
/// # Examples
///
/// ```no_run
/// # fn handler(trace: &profiler_report::Timeline) -> Result<(), profiler_report::RestrictionError> {
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
    /// Returns the edges of rows; `edges` is `None` if their source has no call graph.
    pub(super) fn of(rows: &[Row], edges: Option<&[CallEdge]>, side: Side) -> Self {
        let is_unknown = edges.is_none();
        let mut by_function: HashMap<&str, Vec<&CallEdge>> = HashMap::new();
        for edge in edges.into_iter().flatten() {
            if let Some(function) = side.function(edge) {
                by_function.entry(function).or_default().push(edge);
            }
        }
        let mut edges = Vec::new();
        let mut seen = HashSet::new();
        for row in rows.iter().filter(|row| seen.insert(&row.name)) {
            let mut of_row = by_function.remove(row.name.as_str()).unwrap_or_default();
            of_row.order_by(|left, right| {
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
            is_unknown,
        }
    }

    /// Returns the edges as a JSON array: times in nanoseconds.
    #[must_use]
    pub fn to_json(&self) -> String {
        lines(self.edges.iter().map(edge_json)) + "\n"
    }

    /// Returns the edges as CSV with a header line: times in nanoseconds.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let header = csv::header(&edge_columns(&CallEdge::default()));
        let lines = self.edges.iter().map(|edge| csv::line(&edge_columns(edge)));
        std::iter::once(header).chain(lines).collect()
    }
}

impl fmt::Display for CallEdges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(TableOptions::new()))
    }
}

fn edge_json(edge: &CallEdge) -> String {
    let times = |times: EdgeTimes| {
        object([
            Field::nanoseconds("total_ns", times.total_ns),
            Field::nanoseconds("self_ns", times.self_ns),
        ])
    };
    object([
        Field::optional_text("caller", edge.caller.as_deref()),
        Field::text("callee", &edge.callee),
        Field::raw("calls", edge.calls),
        Field::raw("primitive_calls", edge.primitive_calls),
        Field::optional("cpu", edge.cpu.map(times)),
        Field::optional("cuda", edge.cuda.map(times)),
    ])
}

fn edge_columns(edge: &CallEdge) -> Vec<Field> {
    let time = |key, times: Option<EdgeTimes>, time: fn(EdgeTimes) -> f64| {
        Field::optional(key, times.map(time).map(nanoseconds))
    };
    vec![
        Field::optional_text("caller", edge.caller.as_deref()),
        Field::text("callee", &edge.callee),
        Field::raw("calls", edge.calls),
        Field::raw("primitive_calls", edge.primitive_calls),
        time("cpu_total_ns", edge.cpu, |times| times.total_ns),
        time("cpu_self_ns", edge.cpu, |times| times.self_ns),
        time("cuda_total_ns", edge.cuda, |times| times.total_ns),
        time("cuda_self_ns", edge.cuda, |times| times.self_ns),
    ]
}
