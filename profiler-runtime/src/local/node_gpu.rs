//! The GPU times of the call tree's nodes.

use profiler_host::sync::{Lock, ReentrancyGuard};

use crate::stats::Added;

/// The GPU times of the calls of a node, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NodeGpuTimes {
    pub(crate) calls: u64,
    /// The time of calls that are not inside another one of their caller and callee with a time on their stream.
    pub(crate) total: f64,
    /// The part of it that is inside another call of the function with a time on its stream.
    pub(crate) hidden_total: f64,
    pub(crate) own: f64,
}

impl NodeGpuTimes {
    /// Returns `true` if there are times.
    pub(crate) fn has_times(&self) -> bool {
        self.calls > 0 || self.own > 0.0
    }
}

/// By the id of the node. Its lock is not that of the registry of nodes, which measured threads wait for.
static TIMES: Lock<Vec<NodeGpuTimes>> = Lock::new(Vec::new());

/// Counts a call on the GPU on its node, if it has one.
pub(crate) fn count(node: Option<u32>, added: Added) {
    with_times(node, |times| {
        times.calls += 1;
        times.own += added.own;
        times.total += added.of_pair;
        times.hidden_total += added.of_pair - added.of_name;
    });
}

/// Adds a time that something else measured in a call: it is in the sums, and no call.
pub(super) fn add_reported(node: Option<u32>, ns: f64) {
    with_times(node, |times| {
        times.own += ns;
        times.total += ns;
    });
}

fn with_times(node: Option<u32>, change: impl FnOnce(&mut NodeGpuTimes)) {
    let Some(node) = node else { return };
    let _reentrancy = ReentrancyGuard::try_enter();
    let mut times = TIMES.lock();
    let index = node as usize;
    let missing = (index + 1).saturating_sub(times.len());
    if times.try_reserve(missing).is_err() {
        return;
    }
    if missing > 0 {
        times.resize(index + 1, NodeGpuTimes::default());
    }
    change(&mut times[index]);
}

/// Returns the times of all nodes that have some, by id.
pub(super) fn all() -> Vec<NodeGpuTimes> {
    let _reentrancy = ReentrancyGuard::try_enter();
    TIMES.lock().clone()
}
