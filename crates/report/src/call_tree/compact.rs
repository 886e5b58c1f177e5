//! Reads and writes the call tree of a summary by serde, as [`CallTree::to_json`] writes it.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::bounded::within_bounds;
use super::{CallNode, CallTree, HiddenCalls};
use crate::callers::EdgeTimes;

/// Parent, name, calls, recursive calls, total and self time on the CPU, total and self time on the GPU.
type Node = (
    Option<u32>,
    u32,
    u64,
    u64,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
);

/// A tree in which each name is written once.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Compact {
    /// Names and source locations.
    names: Vec<(String, String)>,
    nodes: Vec<Node>,
    /// Node, calls, total time on the CPU and on the GPU.
    hidden: Vec<(u32, u64, f64, f64)>,
    /// Nodes whose paths were not followed, and those without calls of their own.
    cut: Vec<u32>,
    callers_only: Vec<u32>,
}

#[allow(clippy::ref_option, reason = "serde passes a reference to the field")]
pub(crate) fn serialize<S: Serializer>(
    tree: &Option<Arc<CallTree>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    tree.as_deref().map(Compact::of).serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Arc<CallTree>>, D::Error> {
    let compact: Option<Compact> = Option::deserialize(from)?;
    let tree = compact.map(Compact::into_tree).transpose();
    tree.map(|tree| tree.map(|tree| Arc::new(within_bounds(tree))))
        .map_err(de::Error::custom)
}

impl Compact {
    fn of(tree: &CallTree) -> Self {
        let mut compact = Self::default();
        let mut numbers: HashMap<(&str, &str), u32> = HashMap::new();
        for (index, node) in (0..).zip(&tree.nodes) {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let named = (&*node.name, &*node.location);
            let name = *numbers.entry(named).or_insert(next);
            if name == next {
                let named = (node.name.to_string(), node.location.to_string());
                compact.names.push(named);
            }
            compact.nodes.push((
                node.parent,
                name,
                node.calls,
                node.recursive_calls,
                node.cpu.map(|cpu| cpu.total_ns),
                node.cpu.map(|cpu| cpu.self_ns),
                node.cuda.map(|cuda| cuda.total_ns),
                node.cuda.map(|cuda| cuda.self_ns),
            ));
            compact.cut.extend(node.is_cut.then_some(index));
            compact
                .callers_only
                .extend(node.is_caller_only.then_some(index));
            let hidden = node.hidden;
            if hidden != HiddenCalls::default() {
                let hidden = (index, hidden.calls, hidden.cpu_ns, hidden.cuda_ns);
                compact.hidden.push(hidden);
            }
        }
        compact
    }

    fn into_tree(self) -> Result<CallTree, String> {
        let names = self.names.into_iter();
        let names = names.map(|(name, location)| (Arc::from(name), Arc::from(location)));
        let names: Vec<(Arc<str>, Arc<str>)> = names.collect();
        let mut nodes: Vec<CallNode> = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.into_iter().enumerate() {
            let (parent, name, calls, recursive_calls, ..) = node;
            let (.., cpu_total, cpu_self, cuda_total, cuda_self) = node;
            if let Some(parent) = parent.filter(|parent| *parent as usize >= index) {
                return Err(format!(
                    "node {index} of `call_tree` has the parent {parent}, which does not come before it"
                ));
            }
            let Some((name, location)) = names.get(name as usize) else {
                return Err(format!(
                    "node {index} of `call_tree` has the name {name}, and there are {}",
                    names.len()
                ));
            };
            nodes.push(CallNode {
                parent,
                name: Arc::clone(name),
                location: Arc::clone(location),
                calls,
                recursive_calls,
                cpu: times(cpu_total, cpu_self),
                cuda: times(cuda_total, cuda_self),
                ..CallNode::default()
            });
        }
        for (index, calls, cpu_ns, cuda_ns) in self.hidden {
            node(&mut nodes, index, "hidden")?.hidden = HiddenCalls {
                calls,
                cpu_ns,
                cuda_ns,
                pair_cuda_ns: 0.0,
                non_exhaustive: (),
            };
        }
        for index in self.cut {
            node(&mut nodes, index, "cut")?.is_cut = true;
        }
        for index in self.callers_only {
            node(&mut nodes, index, "callers_only")?.is_caller_only = true;
        }
        Ok(CallTree {
            nodes,
            ..CallTree::default()
        })
    }
}

/// Returns the node that an item of this key is about.
fn node<'n>(nodes: &'n mut [CallNode], index: u32, key: &str) -> Result<&'n mut CallNode, String> {
    let all = nodes.len();
    let node = nodes.get_mut(index as usize);
    node.ok_or_else(|| format!("`{key}` of `call_tree` has node {index}, and there are {all}"))
}

fn times(total_ns: Option<f64>, self_ns: Option<f64>) -> Option<EdgeTimes> {
    Some(EdgeTimes {
        total_ns: total_ns?,
        self_ns: self_ns?,
        non_exhaustive: (),
    })
}
