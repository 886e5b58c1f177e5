//! The functions of a call tree, and who called them.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use super::{CallNode, CallTree, HiddenCalls};
use crate::callers::{CallEdge, EdgeTimes};
use crate::walk::Visit;

/// The calls of a function on all paths.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CallFunction {
    /// Its name.
    pub name: Arc<str>,
    /// The source location as `file:line`; empty if it is not known.
    pub location: Arc<str>,
    /// All calls, recursive ones included.
    pub calls: u64,
    /// Calls made while no other call of the function was open.
    pub primitive_calls: u64,
    /// The times on the CPU, if they were recorded.
    pub cpu: Option<EdgeTimes>,
    /// The times on the GPU, if there are any.
    pub cuda: Option<EdgeTimes>,
}

/// Sums over nodes.
#[derive(Default)]
struct Sums {
    calls: u64,
    primitive_calls: u64,
    cpu: Option<EdgeTimes>,
    cuda: Option<EdgeTimes>,
}

impl Sums {
    /// Adds a node. Its total on the CPU counts if it is not inside another node of its key, except for the hidden calls. On the
    /// GPU, what is inside other calls does not depend on the path: it is all in `hidden`.
    fn add(&mut self, node: &CallNode, is_inside_itself: bool, hidden: HiddenCalls) {
        self.calls = self.calls.saturating_add(node.calls);
        if !is_inside_itself {
            let others = node.recursive_calls.saturating_add(hidden.calls);
            let primitive = node.calls.saturating_sub(others);
            self.primitive_calls = self.primitive_calls.saturating_add(primitive);
        }
        for (sum, times, is_inside, hidden_ns) in [
            (&mut self.cpu, node.cpu, is_inside_itself, hidden.cpu_ns),
            (&mut self.cuda, node.cuda, false, hidden.cuda_ns),
        ] {
            if let Some(times) = times {
                let total_ns = if is_inside {
                    0.0
                } else {
                    (times.total_ns - hidden_ns).max(0.0)
                };
                CallNode::add(sum, total_ns, times.self_ns);
            }
        }
    }
}

impl CallTree {
    /// Returns the functions in the order in which the tree has them first.
    #[must_use]
    pub fn functions(&self) -> Vec<CallFunction> {
        let sums = self.sums_by(|node| &*node.name, |node| node.hidden);
        let function = |(first, sums): (&CallNode, Sums)| CallFunction {
            name: Arc::clone(&first.name),
            location: Arc::clone(&first.location),
            calls: sums.calls,
            primitive_calls: sums.primitive_calls,
            cpu: sums.cpu,
            cuda: sums.cuda,
        };
        sums.into_iter().map(function).collect()
    }

    /// Returns the pairs of caller and callee with calls.
    pub(crate) fn called_edges(&self) -> Arc<[CallEdge]> {
        let edges = self.edges().into_iter();
        edges.filter(|edge| edge.calls > 0).collect()
    }

    /// Returns all pairs of caller and callee, in the order in which the tree has them first.
    #[must_use]
    pub fn edges(&self) -> Vec<CallEdge> {
        let caller = |node: &CallNode| {
            let caller = self.nodes.get(node.parent? as usize)?;
            Some(Arc::clone(&caller.name))
        };
        let pair = |node: &CallNode| (caller(node), Arc::clone(&node.name));
        let of_pair = |node: &CallNode| HiddenCalls {
            cuda_ns: node.hidden.pair_cuda_ns,
            ..HiddenCalls::default()
        };
        let sums = self.sums_by(pair, of_pair).into_iter();
        // Nothing called what only says who called others.
        let sums = sums.filter(|(first, sums)| !first.is_caller_only || sums.calls > 0);
        let edge = |(first, sums): (&CallNode, Sums)| CallEdge {
            caller: caller(first).map(|name| name.to_string()),
            callee: first.name.to_string(),
            calls: sums.calls,
            primitive_calls: sums.primitive_calls,
            cpu: sums.cpu,
            cuda: sums.cuda,
        };
        sums.map(edge).collect()
    }

    /// Adds up the nodes that have the same key. In the total on the CPU,
    /// a node inside another one of its key does not count again.
    fn sums_by<'t, K: Eq + Hash>(
        &'t self,
        key: impl Fn(&'t CallNode) -> K,
        hidden: impl Fn(&CallNode) -> HiddenCalls,
    ) -> Vec<(&'t CallNode, Sums)> {
        let mut numbers: HashMap<K, usize> = HashMap::new();
        let mut sums: Vec<(&CallNode, Sums)> = Vec::new();
        let mut number_of = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let number = *numbers.entry(key(node)).or_insert_with(|| {
                sums.push((node, Sums::default()));
                sums.len() - 1
            });
            number_of.push(number);
        }
        let mut open = vec![0_u32; sums.len()];
        for visit in self.walk() {
            let (Visit::Enter(index) | Visit::Leave(index)) = visit;
            let number = number_of[index];
            if visit == Visit::Enter(index) {
                let node = &self.nodes[index];
                sums[number].1.add(node, open[number] > 0, hidden(node));
                open[number] += 1;
            } else {
                open[number] -= 1;
            }
        }
        for cuda in sums.iter_mut().filter_map(|(_, sums)| sums.cuda.as_mut()) {
            // Of a call on several streams, a file has one.
            cuda.total_ns = cuda.total_ns.max(cuda.self_ns);
        }
        sums
    }
}
