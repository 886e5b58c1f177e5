//! The GPU times of the call tree's nodes.

use profiler_host::sync::{Lock, ReentrancyGuard};

use super::CountedCall;
use crate::stats::CallKind;

/// The GPU times of the calls of a node, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NodeGpuTimes {
    pub(crate) calls: u64,
    /// The time of all calls but the recursive ones.
    pub(crate) total: f64,
    /// The time of hidden calls.
    pub(crate) hidden_total: f64,
    pub(crate) own: f64,
}

/// By the id of the node. Its lock is not that of the registry of nodes, which measured threads wait for.
static TIMES: Lock<Vec<NodeGpuTimes>> = Lock::new(Vec::new());

/// Counts the total and self time of a call on the GPU, in nanoseconds.
pub(crate) fn count(call: CountedCall, ns: f64, own: f64) {
    let Some(node) = call.node() else { return };
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
    let (times, kind) = (&mut times[index], call.kind());
    times.calls += 1;
    times.own += own;
    if kind != CallKind::Recursive {
        times.total += ns;
    }
    if kind == CallKind::Hidden {
        times.hidden_total += ns;
    }
}

/// Returns the times of all nodes that have some, by id.
pub(super) fn all() -> Vec<NodeGpuTimes> {
    let _reentrancy = ReentrancyGuard::try_enter();
    TIMES.lock().clone()
}
