//! A call tree as JSON.

use std::collections::HashMap;

use super::{CallNode, CallTree, HiddenCalls};
use crate::text::json::{array, lines, object, string};
use crate::text::{Field, nanoseconds};

impl CallTree {
    /// Returns the tree as a JSON object.
    ///
    /// `names` has a name and its source location in each item. An item of `nodes` has the index of its parent, that of
    /// its name, the calls, the recursive ones among them, and the total and self times on the CPU and on the GPU in
    /// nanoseconds. An item of `hidden` has the index of a node, and the number and times of its hidden calls. `cut` and
    /// `callers_only` have the indices of nodes whose paths were not followed, and of those that have no calls of their own.
    pub(crate) fn to_json(&self) -> String {
        let mut numbers: HashMap<(&str, &str), usize> = HashMap::new();
        let mut names = Vec::new();
        let mut number = |name, location| {
            *numbers.entry((name, location)).or_insert_with(|| {
                names.push(array([string(name), string(location)]));
                names.len() - 1
            })
        };
        let nodes: Vec<String> = self
            .nodes
            .iter()
            .map(|node| node_json(node, number(&node.name, &node.location)))
            .collect();
        object([
            Field::raw("names", lines(names)),
            Field::raw("nodes", lines(nodes)),
            Field::raw("hidden", array(self.hidden_json())),
            Field::raw("cut", array(self.indices(|node| node.is_cut))),
            Field::raw(
                "callers_only",
                array(self.indices(|node| node.is_caller_only)),
            ),
        ])
    }

    fn indices(&self, is_meant: impl Fn(&CallNode) -> bool) -> impl Iterator<Item = String> {
        let nodes = self.nodes.iter().enumerate();
        let meant = nodes.filter(move |(_, node)| is_meant(node));
        meant.map(|(index, _)| index.to_string())
    }

    fn hidden_json(&self) -> impl Iterator<Item = String> {
        let nodes = self.nodes.iter().map(|node| &node.hidden).enumerate();
        let hidden = nodes.filter(|(_, hidden)| **hidden != HiddenCalls::default());
        hidden.map(|(index, hidden)| {
            array([
                index.to_string(),
                hidden.calls.to_string(),
                nanoseconds(hidden.cpu_ns),
                nanoseconds(hidden.cuda_ns),
            ])
        })
    }
}

fn node_json(node: &CallNode, name: usize) -> String {
    let null = || "null".to_owned();
    let times = [node.cpu, node.cuda]
        .into_iter()
        .flat_map(|times| match times {
            Some(times) => [times.total_ns, times.self_ns].map(nanoseconds),
            None => [null(), null()],
        });
    let counts = [
        node.parent.map_or_else(null, |parent| parent.to_string()),
        name.to_string(),
        node.calls.to_string(),
        node.recursive_calls.to_string(),
    ];
    array(counts.into_iter().chain(times))
}
