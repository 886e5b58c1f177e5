use proptest::prelude::*;

use super::super::collapsed::collapsed;
use super::{any_tree, tree};
use crate::stack_metric::StackMetric;
use crate::{CallTree, ExportError};

/// Reads stacks as tools do: the last number is the value.
fn read(text: &str) -> Vec<(Vec<&str>, u64)> {
    text.lines()
        .map(|line| {
            let (stack, value) = line.rsplit_once(' ').expect("a value");
            (
                stack.split(';').collect(),
                value.parse().expect("an integer"),
            )
        })
        .collect()
}

#[test]
fn each_path_is_a_line() {
    let tree = tree(&[
        (None, "main", 1, 10.4, None),
        (Some(0), "forward", 3, 20.0, Some(30.6)),
    ]);
    let cpu = collapsed(&tree, StackMetric::SelfCpuTimeTotal);
    assert_eq!(cpu, "main 10\nmain;forward 20\n");
    let cuda = collapsed(&tree, StackMetric::SelfCudaTimeTotal);
    assert_eq!(cuda, "main;forward 31\n");
}

#[test]
fn names_keep_no_character_that_separates() {
    let names = [
        "a;b",
        "line\nbreak\t",
        "",
        " ",
        "layer 2",
        "v 1.5 ",
        "2",
        "\0\u{1b}[2J\u{8}",
    ];
    let nodes = names.map(|name| (None, name, 1, 1.0, None));
    let text = collapsed(&tree(&nodes), StackMetric::Count);
    let mut found: Vec<&str> = read(&text).into_iter().map(|(path, _)| path[0]).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "2",
            "?",
            "a:b",
            "layer_2",
            "line break",
            "v_1.5",
            "\u{fffd}\u{fffd}[2J\u{fffd}"
        ]
    );
}

#[test]
fn nodes_that_differ_only_in_their_labels_are_one_stack() {
    let mut tree = tree(&[(None, "main", 1, 0.4, None), (None, "main", 1, 0.4, None)]);
    tree.nodes[1].labels.step = Some(1);
    assert_eq!(collapsed(&tree, StackMetric::SelfCpuTimeTotal), "main 1\n");
}

#[test]
fn what_was_not_recorded_is_an_error_that_says_what_to_do() {
    let path = std::env::temp_dir().join("profiler-stacks-that-do-not-exist");
    let tree = tree(&[(None, "main", 1, 1.0, None)]);
    let error = tree
        .export_stacks(&path, "self_cuda_time_total")
        .unwrap_err();
    assert!(matches!(error, ExportError::NotRecorded { .. }));
    assert!(error.to_string().contains("name the streams"), "{error}");
    let error = tree
        .export_stacks(&path, "self_cdua_time_total")
        .unwrap_err();
    assert!(matches!(error, ExportError::Metric(_)));
    let error = error.to_string();
    assert!(
        error.contains("did you mean `self_cuda_time_total`"),
        "{error}"
    );
    assert!(!path.exists());
    let error = CallTree::default().export_stacks(&path, StackMetric::Count);
    assert!(error.is_err());
}

proptest! {
    #[test]
    fn nothing_is_lost(tree in any_tree()) {
        let text = collapsed(&tree, StackMetric::SelfCpuTimeTotal);
        let sum: u64 = read(&text).iter().map(|(_, value)| value).sum();
        let expected: f64 = tree.nodes.iter().map(|node| node.cpu.unwrap().self_ns).sum();
        prop_assert_eq!(sum as f64, expected);
    }
}
