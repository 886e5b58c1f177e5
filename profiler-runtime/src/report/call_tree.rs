//! The call tree, as plain data.

use std::sync::Arc;

use super::callers::EdgeTimes;

/// What called what, with the calls, times and memory of each path: the common source of all formats that show stacks.
///
/// A node comes after its parent. Nodes with the same parent differ in their names or labels.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CallTree {
    /// The nodes; [`CallNode::parent`] is an index.
    pub nodes: Vec<CallNode>,
    /// When the measurement began, in nanoseconds since the Unix epoch; 0 if that is not known.
    pub start_unix_ns: i64,
    /// How long it took, in nanoseconds.
    pub duration_ns: i64,
}

/// The calls of one function on one path: through the same callers, and with the same labels.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
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
    /// The times on the CPU, if they were recorded.
    pub cpu: Option<EdgeTimes>,
    /// The times on the GPU, if there are any.
    pub cuda: Option<EdgeTimes>,
    /// Host bytes allocated without children, if they were recorded.
    pub allocated_bytes: Option<u64>,
    /// Device bytes taken less those given back, without children, if they were recorded.
    pub device_bytes: Option<i64>,
}

/// What the calls of a node have in common.
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
