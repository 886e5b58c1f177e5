//! The call tree, as plain data.

#[cfg(any(test, feature = "serde"))]
mod bounded;
#[cfg(feature = "serde")]
pub(super) mod compact;
mod functions;
mod json;
mod of_timeline;
mod options;
mod paths;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::callers::EdgeTimes;
use super::row::Row;
use super::times::Times;
use super::walk::{NONE, Walk};
pub use functions::CallFunction;
pub(crate) use of_timeline::callers;
pub use options::CallTreeOptions;

/// The paths of calls, with the calls, times and memory of each: the common source of all formats that show stacks.
///
/// A node comes after its parent. Nodes with the same parent differ in their names or labels.
///
/// Recursion makes a path longer with each call. Where that would make the tree too large, a call is counted on the node
/// of the open call that has the same caller and callee; [`CallNode::recursive_calls`] says how many were. Sums of self
/// times over a node and all below it ([`sums`](CallTree::sums)) count each instant once, so viewers use them as widths.
///
/// The running statistics count 16,384 paths, and a tree of a file or a time line has 131,072, of 512 names and with 128 MiB of
/// names at most. Calls on further ones are counted by caller and callee alone: the node
/// `(other callers)` has a node for each such caller, with its callees. So the calls and times of functions and
/// [`edges`](CallTree::edges) are exact; [`CallNode::is_cut`] says where a path was not followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallTree {
    /// The nodes; [`CallNode::parent`] is an index.
    pub nodes: Vec<CallNode>,
    /// When the measurement began, in nanoseconds since the Unix epoch; 0 if that is not known.
    pub start_unix_ns: i64,
    /// How long it took, in nanoseconds.
    pub duration_ns: i64,
    /// `true` if callers were not recorded, so that no node has one.
    pub is_flat: bool,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// The calls of one function on one path: through the same callers, and with the same labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallNode {
    /// The index of the caller; `None` for a call without one.
    pub parent: Option<u32>,
    /// The name of the function.
    pub name: Arc<str>,
    /// The source location as `file:line`; empty if it is not known.
    pub location: Arc<str>,
    /// The thread and the stream, and the step, if the tree is divided by them.
    pub labels: CallLabels,
    /// All calls, recursive ones included.
    pub calls: u64,
    /// Calls made while another call of this node was open. They are in the self time, not in the total on the CPU. In that on
    /// the GPU, such a call is if no open call of the node has a time on its stream.
    pub recursive_calls: u64,
    /// The times on the CPU, if they were recorded.
    pub cpu: Option<EdgeTimes>,
    /// The times on the GPU, if there are any. The total of a function that was not measured on the GPU itself is that
    /// of the kernels and copies below it.
    pub cuda: Option<EdgeTimes>,
    /// Host bytes allocated without children, if they were recorded.
    pub allocated_bytes: Option<u64>,
    /// Device bytes taken less those given back, without children, if they were recorded.
    pub device_bytes: Option<i64>,
    /// The calls that were made inside another call of the function that is not on the path.
    pub hidden: HiddenCalls,
    /// `true` if some calls that were made here are not below this node: their paths were too many, and they stand below
    /// their caller in `(other callers)`.
    pub is_cut: bool,
    /// `true` if the node has no calls of its own: it is the caller of those below it, on paths that are not in the tree.
    pub is_caller_only: bool,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// Calls of a node that were made inside another call of the same function, which the path of the node does not show:
/// a recursive call further up was counted on the node of the first one.
///
/// They are among the calls of the node, but not among the primitive calls of the function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HiddenCalls {
    /// How many there are.
    pub calls: u64,
    /// Their total time on the CPU.
    pub cpu_ns: f64,
    /// The part of the node's total on the GPU that is inside the GPU times of other calls of the function on the same stream,
    /// wherever these stand in the tree.
    pub cuda_ns: f64,
    /// The part of it that is inside those of other calls of the same caller and callee. 0 in trees of a summary, where such
    /// calls are on one node.
    pub pair_cuda_ns: f64,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// The properties that the calls of a node have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CallLabels {
    /// The name of the thread.
    pub thread: Option<Arc<str>>,
    /// The name of the stream.
    pub stream: Option<Arc<str>>,
    /// The number of the step.
    pub step: Option<u64>,
}

impl CallTree {
    /// Returns a tree that has a node without a caller for each row.
    pub(crate) fn of_rows(rows: &[Row]) -> Self {
        let times = |times: &Times| EdgeTimes {
            total_ns: times.total_ns,
            self_ns: times.self_ns,
            non_exhaustive: (),
        };
        let node = |row: &Row| CallNode {
            name: row.name.as_str().into(),
            location: row.location.as_str().into(),
            calls: row.calls,
            recursive_calls: row.calls.saturating_sub(row.primitive_calls),
            cpu: row.cpu.as_ref().map(times),
            cuda: row.cuda.as_ref().map(times),
            ..CallNode::default()
        };
        Self {
            nodes: rows.iter().map(node).collect(),
            is_flat: true,
            ..Self::default()
        }
    }

    /// Returns the nodes without a caller.
    pub fn roots(&self) -> impl Iterator<Item = u32> {
        (0..)
            .zip(&self.nodes)
            .filter(|(_, node)| node.parent.is_none())
            .map(|(index, _)| index)
    }

    /// Returns the nodes that each node called, in the order of the nodes.
    #[must_use]
    pub fn children(&self) -> Vec<Vec<u32>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (index, node) in (0..).zip(&self.nodes) {
            if let Some(of_parent) = node.parent.and_then(|at| children.get_mut(at as usize)) {
                of_parent.push(index);
            }
        }
        children
    }

    /// Returns the path of a node, from the outermost caller to the node itself.
    #[must_use]
    pub fn path(&self, node: u32) -> Vec<u32> {
        let parent = |at: &u32| {
            let parent = self.nodes.get(*at as usize)?.parent?;
            (parent < *at).then_some(parent)
        };
        let mut path: Vec<u32> = std::iter::successors(Some(node), parent).collect();
        path.reverse();
        path
    }

    /// Returns, for each node, the sum of a value over the node and all nodes below it.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// let tree = summary().call_tree();
    /// let cpu_ns = tree.sums(|node| node.cpu.map_or(0.0, |cpu| cpu.self_ns));
    /// assert_eq!(cpu_ns.len(), tree.nodes.len());
    /// ```
    #[must_use]
    pub fn sums(&self, value: impl Fn(&CallNode) -> f64) -> Vec<f64> {
        let mut sums: Vec<f64> = self.nodes.iter().map(value).collect();
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent.map(|parent| parent as usize)
                && parent < index
            {
                sums[parent] += sums[index];
            }
        }
        sums
    }

    /// Returns a walk through the nodes, from callers to callees.
    fn walk(&self) -> Walk {
        let parent = |(index, node): (u32, &CallNode)| {
            node.parent.filter(|parent| *parent < index).unwrap_or(NONE)
        };
        let parents: Vec<u32> = (0..).zip(&self.nodes).map(parent).collect();
        Walk::new(&parents, |_| true)
    }
}

impl CallNode {
    /// Adds times of calls.
    fn add(of: &mut Option<EdgeTimes>, total_ns: f64, self_ns: f64) {
        let times = of.get_or_insert_default();
        times.total_ns += total_ns;
        times.self_ns += self_ns;
    }
}
