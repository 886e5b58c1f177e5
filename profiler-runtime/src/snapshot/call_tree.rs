//! The call tree of the running statistics.

#[cfg(test)]
mod tests;

use profiler_report::internal::NONE;
use profiler_report::{CallNode, CallTree, EdgeTimes, HiddenCalls};

use crate::clock::clock;
use crate::local::callers::{self, NO_CALLER, NodeCounts, OTHER};
use crate::name::{self, Name};
use crate::switch::with_control;

/// The caller of calls on paths beyond the bound.
const OTHER_CALLERS: &str = "(other callers)";

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
    let mut other = None;
    for (id, node) in counts.iter().enumerate() {
        if !is_called[id] {
            continue;
        }
        let parent = match node.parent {
            NO_CALLER => None,
            OTHER => Some(*other.get_or_insert_with(|| {
                nodes.push(CallNode {
                    name: OTHER_CALLERS.into(),
                    location: "".into(),
                    ..CallNode::default()
                });
                index_of_last(&nodes)
            })),
            parent => indices.get(parent as usize).copied(),
        };
        nodes.push(call_node(node, parent, names));
        indices[id] = index_of_last(&nodes);
    }
    nodes
}

fn index_of_last(nodes: &[CallNode]) -> u32 {
    u32::try_from(nodes.len() - 1).unwrap_or(NONE)
}

/// Returns, for each node, whether it or one below it was called.
fn called(counts: &[NodeCounts]) -> Vec<bool> {
    let mut called: Vec<bool> = counts.iter().map(|node| node.cpu.calls > 0).collect();
    for id in (0..counts.len()).rev() {
        let parent = counts[id].parent as usize;
        if called[id] && parent < id {
            called[parent] = true;
        }
    }
    called
}

fn call_node(counts: &NodeCounts, parent: Option<u32>, names: &[&Name]) -> CallNode {
    let ns = |ticks: i64| clock().nanoseconds(ticks as f64).max(0.0);
    let (cpu, cuda) = (&counts.cpu, &counts.cuda);
    let name = names.get(counts.name as usize);
    let location = name.map(|name| format!("{}:{}", name.location.file(), name.location.line()));
    CallNode {
        parent,
        name: name.map_or_else(|| "".into(), |name| name.text.as_str().into()),
        location: location.unwrap_or_default().into(),
        calls: cpu.calls,
        recursive_calls: cpu.recursive_calls,
        cpu: (cpu.calls > 0).then(|| EdgeTimes {
            total_ns: ns(cpu.total),
            self_ns: ns(cpu.own),
            non_exhaustive: (),
        }),
        cuda: (cuda.calls > 0).then_some(EdgeTimes {
            total_ns: cuda.total,
            self_ns: cuda.own,
            non_exhaustive: (),
        }),
        hidden: HiddenCalls {
            calls: cpu.hidden_calls,
            cpu_ns: ns(cpu.hidden_total),
            cuda_ns: cuda.hidden_total,
            non_exhaustive: (),
        },
        ..CallNode::default()
    }
}
