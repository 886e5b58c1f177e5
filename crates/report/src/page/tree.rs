//! The call tree as the script reads it.

use std::collections::HashMap;

use super::numbers::number;
use crate::call_tree::{CallNode, CallTree};
use crate::in_order::InOrder as _;
use crate::text::Field;
use crate::text::json::{array, object, string};

/// How many nodes the page holds. Those with the least time are merged beside their siblings.
const MAX_NODES: usize = 20_000;

/// Returns the tree as JSON: columns of numbers, and names to which one of them points. `None` for an empty tree.
pub(super) fn json(tree: &CallTree) -> Option<String> {
    if tree.nodes.is_empty() {
        return None;
    }
    let mut columns = Columns::default();
    let shares = shares(tree);
    let least = least_share(&shares);
    // The place of each node among those that are kept.
    let mut places: Vec<Option<usize>> = vec![None; tree.nodes.len()];
    let mut merged: HashMap<Option<usize>, (u64, CallNode)> = HashMap::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        let parent = node.parent.map(|parent| parent as usize);
        let place = parent.and_then(|parent| places.get(parent).copied().flatten());
        if shares[index] >= least {
            places[index] = Some(columns.push(place, &node.name, node));
        } else {
            // A descendant of a merged node is merged where that one is.
            places[index] = place;
            let (nodes, sums) = merged.entry(place).or_default();
            *nodes += 1;
            add(sums, node);
        }
    }
    let mut merged: Vec<_> = merged.into_iter().collect();
    merged.order_by_key(|(place, _)| *place);
    for (place, (nodes, sums)) in &merged {
        columns.push(*place, &format!("({nodes} paths with less time)"), sums);
    }
    Some(columns.json())
}

/// Returns the larger of a node's shares of the CPU time and of the GPU time, with all below it.
fn shares(tree: &CallTree) -> Vec<f64> {
    let of = |times: fn(&CallNode) -> f64| {
        let all: f64 = tree.nodes.iter().map(times).sum();
        let sums = tree.sums(times);
        sums.into_iter()
            .map(move |sum| if all > 0.0 { sum / all } else { 0.0 })
    };
    of(cpu_self)
        .zip(of(cuda_self))
        .map(|(cpu, cuda)| cpu.max(cuda))
        .collect()
}

/// Returns the share from which nodes are kept. A node has at least the share of each node below it, so its callers are
/// kept too.
fn least_share(shares: &[f64]) -> f64 {
    if shares.len() <= MAX_NODES {
        return f64::NEG_INFINITY;
    }
    let mut sorted = shares.to_vec();
    let (_, least, _) =
        sorted.select_nth_unstable_by(MAX_NODES, |left, right| right.total_cmp(left));
    // Above the share of the first node that does not fit.
    least.next_up()
}

fn cpu_self(node: &CallNode) -> f64 {
    node.cpu.map_or(0.0, |cpu| cpu.self_ns)
}

fn cuda_self(node: &CallNode) -> f64 {
    node.cuda.map_or(0.0, |cuda| cuda.self_ns)
}

fn add(sums: &mut CallNode, node: &CallNode) {
    sums.calls = sums.calls.saturating_add(node.calls);
    for (sum, times) in [(&mut sums.cpu, node.cpu), (&mut sums.cuda, node.cuda)] {
        if let Some(times) = times {
            sum.get_or_insert_default().self_ns += times.self_ns;
        }
    }
}

/// The nodes, column by column: that is shorter than objects, and compresses better.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    name_places: HashMap<String, usize>,
    /// Places of the callers plus one; zero for none.
    parent: Vec<String>,
    name: Vec<String>,
    calls: Vec<String>,
    cpu: Vec<String>,
    cuda: Vec<String>,
    /// The places of nodes whose paths were not followed.
    cut: Vec<String>,
}

impl Columns {
    /// Appends a node and returns its place.
    fn push(&mut self, parent: Option<usize>, name: &str, node: &CallNode) -> usize {
        let next = self.names.len();
        let name = *self.name_places.entry(name.to_owned()).or_insert_with(|| {
            self.names.push(string(name));
            next
        });
        self.parent
            .push(parent.map_or(0, |parent| parent + 1).to_string());
        self.name.push(name.to_string());
        self.calls.push(node.calls.to_string());
        self.cpu.push(number(cpu_self(node)));
        self.cuda.push(number(cuda_self(node)));
        let place = self.parent.len() - 1;
        self.cut.extend(node.is_cut.then(|| place.to_string()));
        place
    }

    fn json(self) -> String {
        object([
            Field::raw("names", array(self.names)),
            Field::raw("parent", array(self.parent)),
            Field::raw("name", array(self.name)),
            Field::raw("calls", array(self.calls)),
            Field::raw("cpu", array(self.cpu)),
            Field::raw("cuda", array(self.cuda)),
            Field::raw("cut", array(self.cut)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callers::EdgeTimes;

    fn node(parent: Option<u32>, name: &str, self_ns: f64) -> CallNode {
        CallNode {
            parent,
            name: name.into(),
            calls: 1,
            cpu: Some(EdgeTimes {
                self_ns,
                ..EdgeTimes::default()
            }),
            ..CallNode::default()
        }
    }

    #[test]
    fn nodes_are_columns_with_shared_names() {
        let mut tree = CallTree {
            nodes: vec![
                node(None, "a", 1.0),
                node(Some(0), "b", 2.0),
                node(Some(1), "a", 3.0),
            ],
            ..CallTree::default()
        };
        tree.nodes[1].is_cut = true;
        assert_eq!(
            json(&tree).as_deref(),
            Some(
                r#"{"names":["a","b"],"parent":[0,1,2],"name":[0,1,0],"calls":[1,1,1],"cpu":[1,2,3],"cuda":[0,0,0],"cut":[1]}"#
            )
        );
        assert_eq!(json(&CallTree::default()), None);
    }

    #[test]
    fn of_many_nodes_the_smallest_are_merged_and_no_time_is_lost() {
        let mut nodes = vec![node(None, "root", 1.0)];
        nodes.extend((0..30_000).map(|at| node(Some(0), &format!("f{at}"), f64::from(at))));
        let all: f64 = nodes.iter().map(cpu_self).sum();
        let tree = CallTree {
            nodes,
            ..CallTree::default()
        };
        let json: serde_json::Value =
            serde_json::from_str(&json(&tree).expect("nodes")).expect("JSON");
        let cpu = json["cpu"].as_array().expect("times");
        assert!(cpu.len() <= MAX_NODES + 1, "{}", cpu.len());
        let kept: f64 = cpu.iter().filter_map(serde_json::Value::as_f64).sum();
        assert!((kept / all - 1.0).abs() < 1e-4, "{kept} of {all}");
        let names = json["names"].as_array().expect("names");
        let last = names.last().and_then(serde_json::Value::as_str);
        assert_eq!(last, Some("(10001 paths with less time)"));
    }
}
