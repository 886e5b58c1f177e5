//! The call tree of the running statistics.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use profiler_report::internal::{NONE, OTHER_CALLERS};
use profiler_report::{CallNode, CallTree, EdgeTimes, HiddenCalls};

use crate::clock::clock;
use crate::local::callers::{self, NodeCounts, NodeParent};
use crate::name::{self, Name};
use crate::switch::with_control;

/// Returns the tree of all calls since the program began; `None` if callers are not counted.
pub(crate) fn of_statistics() -> Option<CallTree> {
    let counts = callers::all();
    let is_empty = counts.iter().all(|node| node.cpu.calls == 0);
    if is_empty && !with_control(|control| control.settings.callers) {
        return None;
    }
    Some(CallTree {
        nodes: nodes(&counts, &name::all()),
        ..CallTree::default()
    })
}

fn nodes(counts: &[NodeCounts], names: &[&Name]) -> Vec<CallNode> {
    let is_called = called(counts);
    let mut nodes = Vec::with_capacity(counts.len());
    let mut indices = vec![NONE; counts.len()];
    let mut beyond = Beyond::default();
    for (id, node) in counts.iter().enumerate() {
        if !is_called[id] {
            continue;
        }
        let parent = match node.parent {
            NodeParent::NoCaller => None,
            NodeParent::Node(parent) => indices.get(parent as usize).copied(),
            NodeParent::Name(caller) => Some(beyond.caller(&mut nodes, caller, names)),
            NodeParent::Other => Some(beyond.root(&mut nodes)),
        };
        let node = call_node(node, parent, names);
        indices[id] = push(&mut nodes, node);
    }
    nodes
}

/// The nodes above those of paths beyond the bound, which have no calls: the node `(other callers)`, and below it one for
/// each caller.
#[derive(Default)]
struct Beyond {
    root: Option<u32>,
    callers: HashMap<u32, u32>,
}

impl Beyond {
    fn root(&mut self, nodes: &mut Vec<CallNode>) -> u32 {
        *self.root.get_or_insert_with(|| {
            let root = CallNode {
                name: OTHER_CALLERS.into(),
                location: "".into(),
                ..CallNode::default()
            };
            push(nodes, root)
        })
    }

    fn caller(&mut self, nodes: &mut Vec<CallNode>, caller: u32, names: &[&Name]) -> u32 {
        let parent = Some(self.root(nodes));
        *self.callers.entry(caller).or_insert_with(|| {
            let (name, location) = named(caller, names);
            let is_caller_only = true;
            let caller = CallNode {
                parent,
                name,
                location,
                is_caller_only,
                ..CallNode::default()
            };
            push(nodes, caller)
        })
    }
}

/// Appends a node and returns its index.
fn push(nodes: &mut Vec<CallNode>, node: CallNode) -> u32 {
    nodes.push(node);
    u32::try_from(nodes.len() - 1).unwrap_or(NONE)
}

/// Returns the text of a name and its source location.
fn named(name: u32, names: &[&Name]) -> (Arc<str>, Arc<str>) {
    let name = names.get(name as usize);
    let location = name.map(|name| name.location.in_files());
    let text = name.map_or("", |name| name.text.as_str());
    (text.into(), location.unwrap_or_default().into())
}

/// Returns, for each node, whether it or one below it was called.
fn called(counts: &[NodeCounts]) -> Vec<bool> {
    let mut called: Vec<bool> = counts.iter().map(|node| node.cpu.calls > 0).collect();
    for id in (0..counts.len()).rev() {
        if let NodeParent::Node(parent) = counts[id].parent
            && called[id]
        {
            called[parent as usize] = true;
        }
    }
    called
}

fn call_node(counts: &NodeCounts, parent: Option<u32>, names: &[&Name]) -> CallNode {
    let ns = |ticks: i64| clock().nanoseconds(ticks as f64).max(0.0);
    let (cpu, cuda) = (&counts.cpu, &counts.cuda);
    let (name, location) = named(counts.name, names);
    CallNode {
        parent,
        name,
        location,
        is_cut: counts.is_cut,
        calls: cpu.calls,
        recursive_calls: cpu.recursive_calls,
        cpu: (cpu.calls > 0).then(|| EdgeTimes {
            total_ns: ns(cpu.total),
            self_ns: ns(cpu.own),
            non_exhaustive: (),
        }),
        cuda: cuda.has_times().then_some(EdgeTimes {
            total_ns: cuda.total,
            self_ns: cuda.own,
            non_exhaustive: (),
        }),
        hidden: HiddenCalls {
            calls: cpu.hidden_calls,
            cpu_ns: ns(cpu.hidden_total),
            cuda_ns: cuda.hidden_total,
            pair_cuda_ns: 0.0,
            non_exhaustive: (),
        },
        ..CallNode::default()
    }
}
