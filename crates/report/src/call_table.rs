//! The call graph as a table, as `pstats` prints it.

use std::borrow::Borrow;

use profiler_host::diagnostics::printable;

use super::callers::{CallEdge, CallEdges, EdgeTimes, Side};
use super::options::TableOptions;
use super::text::table::{Column, Table, calls};
use super::text::terminal;
use super::text::units::time;

type OfEdge = fn(&CallEdge) -> Option<EdgeTimes>;

/// The devices, each with the ranks of its total and its self time.
const TIMES: [(&str, OfEdge, [u8; 2]); 2] = [
    ("CPU", |edge| edge.cpu, [0, 3]),
    ("CUDA", |edge| edge.cuda, [1, 2]),
];

impl CallEdges {
    /// Returns the table with the width that `options` set. It has all edges: restrict the rows to have fewer.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_report::TableOptions;
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// println!("{}", summary().callers().table(TableOptions::new().width(100)));
    /// ```
    #[must_use]
    pub fn table(&self, options: impl Borrow<TableOptions>) -> String {
        render(self, options.borrow().width.unwrap_or_else(terminal::width))
    }
}

/// Draws edges as a table of at most `width` columns.
pub(crate) fn render(edges: &CallEdges, width: usize) -> String {
    if edges.is_unknown {
        return "callers are not counted: set PROFILER_CALLERS=1 or `Builder::callers(true)`, or take them \
                from the trace of a session\n"
            .to_owned();
    }
    let other = match edges.side {
        Side::Callers => "was called by",
        Side::Callees => "called",
    };
    let mut last = None;
    let mut label = |edge: &CallEdge| {
        let name = edges.side.function(edge).map(printable);
        let is_new = name != last;
        last.clone_from(&name);
        name.filter(|_| is_new).unwrap_or_default()
    };
    let labels: Vec<String> = edges.edges.iter().map(&mut label).collect();
    let others = edges.edges.iter().map(|edge| {
        let other = edges.side.other(edge);
        other.map_or_else(|| "-".to_owned(), printable)
    });
    let mut columns = vec![Column::names(other, others.collect())];
    columns.push(
        Column::of(&edges.edges, "# of Calls", |edge| {
            Some(calls(edge.calls, edge.primitive_calls))
        })
        .rank(4),
    );
    for (device, times, [total, own]) in TIMES {
        if edges.edges.iter().any(|edge| times(edge).is_some()) {
            columns.push(
                Column::of(&edges.edges, format!("{device} total"), |edge| {
                    times(edge).map(|times| time(times.total_ns))
                })
                .rank(total),
            );
            columns.push(
                Column::of(&edges.edges, format!("Self {device}"), |edge| {
                    times(edge).map(|times| time(times.self_ns))
                })
                .rank(own),
            );
        }
    }
    let table = Table {
        title: "Function",
        labels,
        columns,
        hottest: None,
    };
    table.draw(width, false)
}
