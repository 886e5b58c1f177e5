use proptest::prelude::*;

use super::super::pprof::profile;
use super::pprof_reader::{self, Profile};
use super::{any_tree, path_names, tree};
use crate::CallTree;

fn read(tree: &CallTree) -> Profile {
    pprof_reader::read(profile(tree).bytes())
}

#[test]
fn a_sample_has_the_path_the_values_and_the_labels_of_its_node() {
    let mut tree = tree(&[
        (None, "main", 1, 10.4, None),
        (Some(0), "forward", 3, 20.0, Some(30.6)),
    ]);
    let labels = &mut tree.nodes[1].labels;
    labels.thread = Some("trainer".into());
    labels.stream = Some("stream 7".into());
    labels.step = Some(12);
    tree.nodes[1].allocated_bytes = Some(4096);
    tree.nodes[1].device_bytes = Some(-512);
    let profile = read(&tree);
    let types = ["calls", "cpu", "cuda", "alloc", "gpu_alloc"];
    let names: Vec<&str> = profile
        .sample_types
        .iter()
        .map(|(name, _)| &**name)
        .collect();
    assert_eq!(names, types);
    assert_eq!(profile.default_sample_type, "cuda");
    assert_eq!(profile.samples[0].values, [1, 10, 0, 0, 0]);
    let forward = &profile.samples[1];
    assert_eq!(forward.values, [3, 20, 31, 4096, -512]);
    let place = ("src/main.rs".to_owned(), 7);
    let frame = |name: &str| (name.to_owned(), place.0.clone(), place.1);
    assert_eq!(forward.path, [frame("main"), frame("forward")]);
    for (key, value) in [
        ("thread", "trainer"),
        ("stream", "stream 7"),
        ("step", "12"),
    ] {
        assert_eq!(forward.labels[key], value);
    }
}

#[test]
fn values_that_were_not_recorded_are_left_out() {
    let mut tree = tree(&[(None, "main", 1, 10.0, None)]);
    let profile = read(&tree);
    let types = [("calls", "count"), ("cpu", "nanoseconds")];
    assert_eq!(
        profile.sample_types,
        types.map(|(name, unit)| (name.to_owned(), unit.to_owned()))
    );
    assert_eq!(profile.default_sample_type, "cpu");
    assert_eq!(profile.comments, ["#profiler-runtime"]);
    tree.is_flat = true;
    let comments = read(&tree).comments;
    let is_said = |comment: &String| comment.starts_with("callers were not counted");
    assert!(comments.iter().any(is_said), "{comments:?}");
}

#[test]
fn a_tree_without_nodes_is_a_profile_without_samples() {
    let profile = read(&CallTree::default());
    assert!(profile.samples.is_empty());
}

proptest! {
    #[test]
    fn every_node_is_a_sample(tree in any_tree()) {
        let profile = read(&tree);
        prop_assert_eq!(profile.samples.len(), tree.nodes.len());
        for ((index, node), sample) in (0..).zip(&tree.nodes).zip(&profile.samples) {
            let names: Vec<String> = sample.path.iter().map(|(name, ..)| name.clone()).collect();
            prop_assert_eq!(names, path_names(&tree, index));
            prop_assert_eq!(sample.values[0], i64::try_from(node.calls).unwrap());
            prop_assert_eq!(sample.values[1] as f64, node.cpu.unwrap().self_ns);
        }
    }
}
