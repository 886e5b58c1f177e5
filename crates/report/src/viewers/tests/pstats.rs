use std::sync::Arc;

use profiler_host::diagnostics::notices;
use proptest::prelude::*;

use super::super::marshal::Marshal;
use super::super::pstats::{Clock, profile};
use super::marshal_reader::{self, Value};
use super::{any_tree, tree};
use crate::{Row, Summary, Times};

fn near(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1e-9)
}

#[test]
fn recursive_calls_count_once_in_totals() {
    // main calls f, f calls g, g calls f again.
    let tree = tree(&[
        (None, "main", 1, 1e9, None),
        (Some(0), "f", 2, 2e9, None),
        (Some(1), "g", 3, 3e9, None),
        (Some(2), "f", 4, 4e9, None),
    ]);
    let entries = marshal_reader::profile(&profile(&tree, Clock::Cpu));
    let f = &entries["f"];
    assert_eq!((f.primitive_calls, f.calls), (2, 6));
    assert_eq!((f.self_s, f.total_s), (6.0, 9.0));
    assert_eq!(f.callers["main"], (2, 2, 2.0, 9.0));
    // Inside the pair of main and f, this is the first call of g and f.
    assert_eq!(f.callers["g"], (4, 4, 4.0, 4.0));
    assert_eq!(entries["g"].callers["f"], (3, 3, 3.0, 7.0));
    assert_eq!(entries["main"].callers["<program>"], (1, 1, 1.0, 10.0));
    assert_eq!(entries["<program>"].total_s, 10.0);
    assert!(entries["<program>"].callers.is_empty());
}

#[test]
fn a_flat_tree_has_its_recursive_calls_and_says_that_it_is_flat() {
    let mut tree = tree(&[(None, "f", 10, 1e9, None)]);
    tree.nodes[0].recursive_calls = 7;
    tree.is_flat = true;
    let entries = marshal_reader::profile(&profile(&tree, Clock::Cpu));
    assert_eq!((entries["f"].primitive_calls, entries["f"].calls), (3, 10));
    assert!(
        entries["f"]
            .callers
            .contains_key("<program, callers were not counted>")
    );
}

#[test]
fn the_root_of_a_flat_tree_is_as_long_as_the_functions_themselves_took() {
    // `main` calls `f`, which is not known: its total contains that of `f`.
    let mut tree = tree(&[(None, "main", 1, 1e9, None), (None, "f", 2, 3e9, None)]);
    tree.nodes[0].cpu.as_mut().expect("a time").total_ns = 4e9;
    tree.is_flat = true;
    let entries = marshal_reader::profile(&profile(&tree, Clock::Cpu));
    let root = "<program, callers were not counted>";
    assert_eq!(entries[root].total_s, 4.0);
    let main = &entries["main"];
    assert_eq!((main.self_s, main.total_s), (1.0, 4.0));
    assert_eq!(main.callers[root], (1, 1, 1.0, 1.0));
    assert_eq!(entries["f"].callers[root], (2, 2, 3.0, 3.0));
}

#[test]
fn a_file_without_callers_is_warned_of_once_with_how_to_count_them() {
    let row = Row {
        name: "f".to_owned(),
        cpu: Some(Times::default()),
        ..Row::default()
    };
    let mut summary = Summary {
        rows: vec![row],
        ..Summary::default()
    };
    let folder = std::env::temp_dir().join(format!("flat-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let warnings = |summary: &Summary, name: &str| {
        for _ in 0..2 {
            summary.dump_stats(folder.join(name)).expect("room");
        }
        let notices = notices();
        let of_file = notices.iter().filter(|notice| notice.starts_with(name));
        of_file.cloned().collect::<Vec<String>>()
    };
    let flat = warnings(&summary, "flat.prof");
    assert_eq!(flat.len(), 1);
    assert!(flat[0].contains("PROFILER_CALLERS=1"), "{flat:?}");
    let chosen = ("PROFILER_CALLERS".to_owned(), "0".to_owned());
    summary.environment.settings.push(chosen);
    assert!(warnings(&summary, "chosen.prof").is_empty());
    summary.environment.settings.clear();
    summary.call_tree = Some(Arc::default());
    assert!(warnings(&summary, "counted.prof").is_empty());
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn gpu_times_have_the_callers_that_were_not_measured_on_the_gpu() {
    let tree = tree(&[
        (None, "main", 1, 1e9, None),
        (Some(0), "load", 1, 1e9, None),
        (Some(0), "train", 1, 1e9, None),
        (Some(2), "forward", 5, 1e9, Some(2e9)),
        (Some(2), "backward", 5, 1e9, Some(3e9)),
    ]);
    let entries = marshal_reader::profile(&profile(&tree, Clock::Cuda));
    assert!(!entries.contains_key("load"), "it has no GPU time");
    assert_eq!(
        (entries["train"].self_s, entries["train"].total_s),
        (0.0, 5.0)
    );
    assert_eq!(entries["forward"].callers["train"], (5, 5, 2.0, 2.0));
    assert_eq!(entries["<program>"].total_s, 5.0);
}

#[test]
fn calls_on_paths_that_were_not_counted_have_their_callers_and_no_time_twice() {
    // main calls f, which calls g; so does h, whose own path was not counted.
    let mut tree = tree(&[
        (None, "main", 1, 1e9, None),
        (Some(0), "f", 2, 2e9, Some(1e9)),
        (None, "(other callers)", 0, 0.0, None),
        (Some(2), "f", 0, 0.0, None),
        (Some(3), "g", 3, 3e9, Some(2e9)),
        (Some(2), "h", 0, 0.0, None),
        (Some(5), "g", 4, 4e9, Some(3e9)),
        (Some(2), "g", 0, 0.0, None),
        (Some(7), "h", 5, 5e9, None),
    ]);
    for caller in [2, 3, 5, 7] {
        tree.nodes[caller].is_caller_only = caller != 2;
        (tree.nodes[caller].cpu, tree.nodes[caller].cuda) = (None, None);
    }
    let entries = marshal_reader::profile(&profile(&tree, Clock::Cpu));
    assert!(!entries.contains_key("(other callers)"));
    assert_eq!(entries["f"].total_s, 2.0, "its calls include those of g");
    assert_eq!(entries["f"].callers.len(), 1);
    assert_eq!(entries["g"].callers["f"], (3, 3, 3.0, 3.0));
    assert_eq!(entries["g"].callers["h"], (4, 4, 4.0, 4.0));
    assert_eq!(entries["h"].callers["g"], (5, 5, 5.0, 5.0));
    let edges = tree.edges();
    let edges = edges
        .iter()
        .map(|edge| (edge.caller.as_deref(), &*edge.callee));
    let callers = [Some("f"), Some("h")].map(|caller| (caller, "g"));
    assert_eq!(
        edges
            .clone()
            .filter(|(_, callee)| *callee == "g")
            .collect::<Vec<_>>(),
        callers
    );
    assert!(
        edges
            .clone()
            .all(|(caller, _)| caller != Some("(other callers)"))
    );
    let entries = marshal_reader::profile(&profile(&tree, Clock::Cuda));
    assert_eq!(entries["f"].total_s, 1.0);
    assert_eq!(entries["h"].total_s, 3.0, "it was not measured itself");
    assert_eq!(entries["g"].callers["h"], (4, 4, 3.0, 3.0));
}

#[test]
fn integers_of_any_size_are_read_back() {
    let limit = 1_u64 << 31;
    for number in [
        0,
        1,
        limit - 1,
        limit,
        limit + 1,
        (1 << 45) - 1,
        1 << 45,
        u64::MAX,
    ] {
        let mut out = Marshal::default();
        out.integer(number);
        assert_eq!(
            marshal_reader::read(&out.into_bytes()),
            Value::Integer(number)
        );
    }
}

#[test]
fn a_name_may_be_as_long_as_it_likes() {
    let name = "n".repeat(100_000);
    let tree = tree(&[(None, &name, 1, 1.0, None)]);
    let entries = marshal_reader::profile(&profile(&tree, Clock::Cpu));
    assert!(entries.contains_key(&name));
}

proptest! {
    #[test]
    fn sums_agree_with_the_tree(tree in any_tree()) {
        let entries = marshal_reader::profile(&profile(&tree, Clock::Cpu));
        let cpu_s: f64 = tree.nodes.iter().map(|node| node.cpu.unwrap().self_ns / 1e9).sum();
        prop_assert!(near(entries.values().map(|entry| entry.self_s).sum(), cpu_s));
        let calls: u64 = tree.nodes.iter().map(|node| node.calls).sum();
        // The root counts as one call.
        prop_assert_eq!(entries.values().map(|entry| entry.calls).sum::<u64>(), calls + 1);
        let roots: Vec<_> = entries.iter().filter(|(_, entry)| entry.callers.is_empty()).collect();
        prop_assert_eq!(roots.len(), 1, "viewers start at one function");
        prop_assert!(near(roots[0].1.total_s, cpu_s));
        for entry in entries.values().filter(|entry| !entry.callers.is_empty()) {
            prop_assert_eq!(entry.callers.values().map(|edge| edge.0).sum::<u64>(), entry.calls);
            prop_assert!(entry.primitive_calls <= entry.calls);
            prop_assert!(near(entry.callers.values().map(|edge| edge.2).sum(), entry.self_s));
            for caller in entry.callers.keys() {
                prop_assert!(entries.contains_key(caller), "SnakeViz would fail to find it");
            }
        }
    }
    #[test]
    fn all_callers_of_gpu_times_are_in_the_file(tree in any_tree()) {
        let entries = marshal_reader::profile(&profile(&tree, Clock::Cuda));
        let cuda_s: f64 = tree.nodes.iter().filter_map(|node| Some(node.cuda?.self_ns / 1e9)).sum();
        prop_assert!(near(entries.values().map(|entry| entry.self_s).sum(), cuda_s));
        for entry in entries.values() {
            for caller in entry.callers.keys() {
                prop_assert!(entries.contains_key(caller), "SnakeViz would fail to find it");
            }
        }
    }
}
