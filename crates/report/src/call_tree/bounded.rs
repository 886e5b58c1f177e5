//! Trees of files, within the bounds of call trees.

use std::collections::HashMap;
use std::sync::Arc;

use super::paths::Paths;
use super::{CallNode, CallTree};
use crate::callers::{EdgeTimes, OTHER_CALLERS};
use crate::walk::Visit;

/// Returns the tree within the bounds. Calls and times of functions, and of pairs of caller and callee, stay.
pub(super) fn within_bounds(tree: CallTree) -> CallTree {
    let mut paths = Paths::default();
    // The depth, and the bytes of the names; `None` for what has no room, and for all that is below it.
    let mut places: Vec<Option<(u32, usize)>> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let around = node.parent.and_then(|parent| places.get(parent as usize));
        let place = match around {
            None => Some((1, node.name.len() + 1)),
            Some(around) => around.map(|(depth, bytes)| (depth + 1, bytes + node.name.len() + 1)),
        };
        let is_root = around.is_none();
        places.push(place.filter(|(depth, bytes)| is_root || paths.admit(*depth, *bytes)));
    }
    if places.iter().all(Option::is_some) {
        return tree;
    }
    Bounded::new(&tree, &places).build()
}

/// A tree within the bounds, while it is made of one that is not.
struct Bounded<'t> {
    tree: &'t CallTree,
    has_room: Vec<bool>,
    nodes: Vec<CallNode>,
    /// The new node of each node.
    indices: Vec<u32>,
    root: Option<u32>,
    callers: HashMap<&'t str, u32>,
    /// The nodes of pairs of caller and callee, and how many of their nodes are open in the walk.
    pairs: HashMap<(u32, &'t str), u32>,
    open_pairs: HashMap<u32, u32>,
    open_names: HashMap<&'t str, u32>,
}

impl<'t> Bounded<'t> {
    fn new(tree: &'t CallTree, places: &[Option<(u32, usize)>]) -> Self {
        Self {
            tree,
            has_room: places.iter().map(Option::is_some).collect(),
            nodes: Vec::new(),
            indices: vec![0; tree.nodes.len()],
            root: None,
            callers: HashMap::new(),
            pairs: HashMap::new(),
            open_pairs: HashMap::new(),
            open_names: HashMap::new(),
        }
    }

    fn build(mut self) -> CallTree {
        for visit in self.tree.walk() {
            match visit {
                Visit::Enter(index) => self.enter(index),
                Visit::Leave(index) => {
                    let name = &*self.tree.nodes[index].name;
                    *self.open_names.entry(name).or_default() -= 1;
                    *self.open_pairs.entry(self.indices[index]).or_default() -= 1;
                }
            }
        }
        CallTree {
            nodes: self.nodes,
            start_unix_ns: self.tree.start_unix_ns,
            duration_ns: self.tree.duration_ns,
            is_flat: self.tree.is_flat,
            non_exhaustive: (),
        }
    }

    fn enter(&mut self, index: usize) {
        let node = &self.tree.nodes[index];
        let place = match node.parent {
            Some(caller) if !self.has_room[index] => self.add_beyond(caller as usize, node),
            parent => self.push(CallNode {
                parent: parent.map(|parent| self.indices[parent as usize]),
                ..node.clone()
            }),
        };
        self.indices[index] = place;
        *self.open_names.entry(&*node.name).or_default() += 1;
        *self.open_pairs.entry(place).or_default() += 1;
    }

    /// Adds a node by its caller and its name.
    fn add_beyond(&mut self, caller: usize, node: &'t CallNode) -> u32 {
        self.nodes[self.indices[caller] as usize].is_cut = true;
        let caller = &self.tree.nodes[caller];
        let around = self.caller(caller);
        let next = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let place = *self.pairs.entry((around, &*node.name)).or_insert(next);
        if place == next {
            self.nodes.push(CallNode {
                parent: Some(around),
                name: Arc::clone(&node.name),
                location: Arc::clone(&node.location),
                is_cut: node.is_cut,
                is_caller_only: node.is_caller_only,
                ..CallNode::default()
            });
        }
        let is_open = |count: Option<&u32>| count.is_some_and(|count| *count > 0);
        // It is inside another call of this pair, whose total has its time.
        let is_inside_pair = is_open(self.open_pairs.get(&place));
        // Of its function, with another caller: the new path does not show it.
        let is_hidden = !is_inside_pair
            && caller.name != node.name
            && is_open(self.open_names.get(&*node.name));
        let sum = &mut self.nodes[place as usize];
        let recursive = if is_inside_pair {
            node.calls
        } else {
            node.recursive_calls
        };
        sum.calls = sum.calls.saturating_add(node.calls);
        sum.recursive_calls = sum.recursive_calls.saturating_add(recursive);
        sum.is_caller_only &= node.is_caller_only;
        let total = |times: EdgeTimes| if is_inside_pair { 0.0 } else { times.total_ns };
        for (sum, times) in [(&mut sum.cpu, node.cpu), (&mut sum.cuda, node.cuda)] {
            if let Some(times) = times {
                CallNode::add(sum, total(times), times.self_ns);
            }
        }
        if is_hidden {
            let calls = node.calls.saturating_sub(node.recursive_calls);
            sum.hidden.calls = sum.hidden.calls.saturating_add(calls);
            sum.hidden.cpu_ns += node.cpu.map_or(0.0, |cpu| cpu.total_ns);
            sum.hidden.cuda_ns += node.hidden.cuda_ns;
        } else if !is_inside_pair {
            sum.hidden.calls = sum.hidden.calls.saturating_add(node.hidden.calls);
            sum.hidden.cpu_ns += node.hidden.cpu_ns;
            sum.hidden.cuda_ns += node.hidden.cuda_ns;
        }
        place
    }

    /// Returns the node that stands for the caller of others.
    fn caller(&mut self, caller: &'t CallNode) -> u32 {
        let root = self.root.unwrap_or_else(|| {
            self.push(CallNode {
                name: Arc::from(OTHER_CALLERS),
                ..CallNode::default()
            })
        });
        self.root = Some(root);
        if let Some(known) = self.callers.get(&*caller.name) {
            return *known;
        }
        let place = self.push(CallNode {
            parent: Some(root),
            name: Arc::clone(&caller.name),
            location: Arc::clone(&caller.location),
            is_caller_only: true,
            ..CallNode::default()
        });
        self.callers.insert(&*caller.name, place);
        place
    }

    fn push(&mut self, node: CallNode) -> u32 {
        self.nodes.push(node);
        u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a tree of one path of these names, of which each took a second itself.
    fn path<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> CallTree {
        let depth = names.len();
        let node = |(index, name): (u32, &str)| CallNode {
            parent: index.checked_sub(1),
            name: name.into(),
            calls: 1,
            cpu: Some(EdgeTimes {
                total_ns: (depth - index as usize) as f64,
                self_ns: 1.0,
                non_exhaustive: (),
            }),
            ..CallNode::default()
        };
        CallTree {
            nodes: (0..).zip(names).map(node).collect(),
            ..CallTree::default()
        }
    }

    /// Returns the functions and the pairs of caller and callee, in alphabetical order.
    fn sums(tree: &CallTree) -> [Vec<String>; 2] {
        let functions = tree.functions().into_iter().filter(|sum| sum.calls > 0);
        let functions = functions.map(|sum| format!("{sum:?}"));
        let edges = tree.edges().into_iter().filter(|sum| sum.calls > 0);
        let edges = edges.map(|sum| format!("{sum:?}"));
        let mut all = [functions.collect::<Vec<_>>(), edges.collect::<Vec<_>>()];
        for sums in &mut all {
            sums.sort();
        }
        all
    }

    fn deepest(tree: &CallTree) -> usize {
        let all = 0..u32::try_from(tree.nodes.len()).expect("few nodes");
        all.map(|node| tree.path(node).len()).max().unwrap_or(0)
    }

    #[test]
    fn deep_paths_are_counted_by_caller_and_callee_and_no_sum_changes() {
        let names: Vec<String> = (0..1000).map(|depth| format!("f{depth}")).collect();
        let tree = path(names.iter().map(String::as_str));
        let bounded = within_bounds(tree.clone());
        assert_eq!(deepest(&bounded), 512);
        assert!(bounded.nodes[511].is_cut && !bounded.nodes[510].is_cut);
        assert_eq!(sums(&bounded), sums(&tree));
        // Two functions that call each other.
        let two = ["a", "b"];
        let tree = path((0..5000).map(|depth| two[depth % 2]));
        let bounded = within_bounds(tree.clone());
        assert!(deepest(&bounded) == 512 && bounded.nodes.len() < 520);
        assert_eq!(sums(&bounded)[0], sums(&tree)[0]);
    }

    #[test]
    fn a_tree_within_the_bounds_stays_as_it_is() {
        let tree = path((0..512).map(|_| "f"));
        assert_eq!(within_bounds(tree.clone()), tree);
    }
}
