//! Tests of the files, by readers of their own.

#![allow(
    clippy::float_cmp,
    reason = "sums of whole numbers are exact, and values are read back as they were written"
)]

mod collapsed;
mod marshal_reader;
mod pprof;
mod pprof_reader;
mod pstats;

use proptest::prelude::*;

use crate::{CallNode, CallTree, EdgeTimes};

/// Names that break formats whose writers do not expect them.
const HOSTILE: [&str; 8] = [
    "app::train",
    "a;b",
    "line\nbreak",
    "",
    "layer 2",
    "nul\0 and \"quotes\" \\ </script>",
    "🦀 été 中文",
    "<program>",
];

/// A node of a test: its parent, its name, its calls, and its times without children on the CPU and the GPU.
type TestNode<'t> = (Option<u32>, &'t str, u64, f64, Option<f64>);

/// Returns a tree in which each call takes as long as itself and its children.
fn tree(nodes: &[TestNode<'_>]) -> CallTree {
    let mut tree = CallTree::default();
    for (parent, name, calls, cpu, cuda) in nodes {
        let times = |self_ns: f64| EdgeTimes {
            total_ns: self_ns,
            self_ns,
            non_exhaustive: (),
        };
        tree.nodes.push(CallNode {
            parent: *parent,
            name: (*name).into(),
            location: "src/main.rs:7".into(),
            calls: *calls,
            cpu: Some(times(*cpu)),
            cuda: cuda.map(times),
            ..CallNode::default()
        });
    }
    for index in (0..tree.nodes.len()).rev() {
        let node = tree.nodes[index].clone();
        if let Some(parent) = node.parent {
            let parent = &mut tree.nodes[parent as usize];
            for (of_parent, of_node) in [(&mut parent.cpu, node.cpu), (&mut parent.cuda, node.cuda)]
            {
                if let (Some(of_parent), Some(of_node)) = (of_parent, of_node) {
                    of_parent.total_ns += of_node.total_ns;
                }
            }
        }
    }
    tree
}

prop_compose! {
    /// Any tree of a few names, some of them hostile, with recursion.
    fn any_tree()(
        nodes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..HOSTILE.len(), 1..1_u64 << 40, 0..1_000_000_u32, prop::option::of(0..1_000_u32)),
            0..40,
        )
    ) -> CallTree {
        let mut test_nodes: Vec<TestNode<'_>> = Vec::new();
        for (parent, name, calls, cpu, cuda) in nodes {
            // One of the nodes before it, or none.
            let parent = parent.index(test_nodes.len() + 1).checked_sub(1);
            let parent = parent.and_then(|parent| u32::try_from(parent).ok());
            test_nodes.push((parent, HOSTILE[name], calls, cpu.into(), cuda.map(Into::into)));
        }
        tree(&test_nodes)
    }
}

/// Returns the names on the path of a node, the outermost first.
fn path_names(tree: &CallTree, node: u32) -> Vec<String> {
    let path = tree.path(node).into_iter();
    path.map(|at| tree.nodes[at as usize].name.to_string())
        .collect()
}
