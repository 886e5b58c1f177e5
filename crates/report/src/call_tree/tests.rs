mod program;

use proptest::prelude::*;

use self::program::{Model, NAMES, program};
use super::*;
use crate::timeline::{Replay, Slice, SliceKind, SliceName, Step, Timeline, Track};

/// Returns a time line with these slices: kind, name, parent, duration and self time.
fn timeline(slices: &[(SliceKind, &str, Option<u32>, i64, i64)]) -> Timeline {
    let mut timeline = Timeline {
        tracks: vec![Track::default(), Track::default()],
        ..Timeline::default()
    };
    timeline.tracks[1].name = "stream 7".to_owned();
    for (kind, name, parent, duration_ns, self_ns) in slices {
        let known = timeline
            .names
            .iter()
            .position(|known| &*known.text == *name);
        let name = known.unwrap_or_else(|| {
            timeline.names.push(SliceName {
                text: (*name).into(),
                ..SliceName::default()
            });
            timeline.names.len() - 1
        });
        timeline.slices.push(Slice {
            name: u32::try_from(name).unwrap(),
            kind: *kind,
            parent: *parent,
            duration_ns: *duration_ns,
            self_ns: *self_ns,
            track: u32::from(matches!(kind, SliceKind::GpuScope | SliceKind::GpuWork)),
            ..Slice::default()
        });
    }
    timeline
}

/// Total and self time.
type Pair = Option<[f64; 2]>;

/// Returns path, calls, and total and self time on both devices of each node.
fn lines(tree: &CallTree) -> Vec<(String, u64, Pair, Pair)> {
    let times = |of: Option<EdgeTimes>| of.map(|times| [times.total_ns, times.self_ns]);
    let line = |index: u32| {
        let names = tree.path(index);
        let names: Vec<&str> = names
            .iter()
            .map(|at| &*tree.nodes[*at as usize].name)
            .collect();
        let node = &tree.nodes[index as usize];
        (
            names.join("/"),
            node.calls,
            times(node.cpu),
            times(node.cuda),
        )
    };
    (0..).take(tree.nodes.len()).map(line).collect()
}

#[test]
fn calls_of_one_path_are_one_node() {
    use SliceKind::{AsyncCall, Call, FuturePoll, GpuScope, GpuWork};

    let timeline = timeline(&[
        (Call, "train", None, 100, 10),
        (Call, "forward", Some(0), 50, 50),
        (AsyncCall, "load", Some(0), 40, 5),
        (FuturePoll, "load", Some(2), 9, 5),
        (Call, "forward", Some(3), 4, 4),
        (Call, "forward", Some(0), 20, 20),
        (GpuScope, "forward", Some(5), 30, 30),
        (GpuWork, "kernel", Some(1), 7, 7),
        (GpuWork, "kernel", Some(4), 2, 2),
        (GpuWork, "alone", None, 1, 1),
        (GpuScope, "alone too", None, 1, 1),
    ]);
    let tree = timeline.call_tree(CallTreeOptions::new());
    assert_eq!(
        lines(&tree),
        [
            ("train".to_owned(), 1, Some([100.0, 10.0]), Some([9.0, 0.0])),
            (
                "train/forward".to_owned(),
                2,
                Some([70.0, 70.0]),
                Some([30.0, 30.0])
            ),
            ("train/forward/kernel".to_owned(), 1, None, Some([7.0, 7.0])),
            (
                "train/load".to_owned(),
                1,
                Some([40.0, 5.0]),
                Some([2.0, 0.0])
            ),
            (
                "train/load/forward".to_owned(),
                1,
                Some([4.0, 4.0]),
                Some([2.0, 0.0])
            ),
            (
                "train/load/forward/kernel".to_owned(),
                1,
                None,
                Some([2.0, 2.0])
            ),
            ("alone".to_owned(), 1, None, Some([1.0, 1.0])),
            ("alone too".to_owned(), 1, None, Some([1.0, 1.0])),
        ]
    );
    assert_eq!(tree.roots().collect::<Vec<_>>(), [0, 6, 7]);
    assert_eq!(tree.children()[0], [1, 3]);
    let own = tree.sums(|node| node.cpu.map_or(0.0, |cpu| cpu.self_ns));
    assert_eq!(own[..4], [89.0, 70.0, 0.0, 9.0]);
}

#[test]
fn work_inside_the_gpu_time_of_a_scope_is_counted_there() {
    use SliceKind::{Call, GpuScope, GpuWork};

    let timeline = timeline(&[
        (Call, "train", None, 100, 90),
        (Call, "forward", Some(0), 10, 10),
        (GpuScope, "train", Some(0), 30, 30),
        (GpuWork, "kernel", Some(1), 7, 7),
    ]);
    let tree = timeline.call_tree(CallTreeOptions::new());
    let cuda = Some([30.0, 30.0]);
    assert_eq!(
        lines(&tree),
        [
            ("train".to_owned(), 1, Some([100.0, 90.0]), cuda),
            ("train/forward".to_owned(), 1, Some([10.0, 10.0]), None),
        ]
    );
    let averages = timeline.key_averages();
    assert_eq!(averages.self_cuda_time_total_ns, Some(30.0));
}

#[test]
fn labels_divide_a_node() {
    use SliceKind::{Call, GpuScope, GpuWork};

    let mut timeline = timeline(&[
        (Call, "step", None, 10, 10),
        (Call, "step", None, 10, 10),
        (Call, "step", None, 10, 10),
        (GpuScope, "step", Some(1), 5, 5),
        (GpuWork, "kernel", Some(2), 5, 5),
    ]);
    timeline.tracks[0].name = "main".to_owned();
    for (slice, start) in timeline.slices.iter_mut().zip([0, 100, 150, 300, 200]) {
        slice.start_ns = start;
    }
    timeline.steps = [(4, 0, 100), (5, 100, 200), (6, 200, 300)]
        .map(|(number, start_ns, end_ns)| Step {
            number,
            start_ns,
            end_ns,
            track: None,
            slice: None,
            non_exhaustive: (),
        })
        .to_vec();
    let tree = timeline.call_tree(CallTreeOptions::new().step(true).stream(true).thread(true));
    let labels = tree.nodes.iter().map(|node| {
        let labels = &node.labels;
        (
            labels.thread.as_deref(),
            labels.stream.as_deref(),
            labels.step,
        )
    });
    assert_eq!(
        labels.collect::<Vec<_>>(),
        [
            (Some("main"), None, Some(4)),
            (Some("main"), Some("stream 7"), Some(5)),
            (Some("main"), None, Some(5)),
            (None, Some("stream 7"), Some(5)),
        ]
    );
    let steps = timeline.call_tree(CallTreeOptions::new().step(true));
    assert_eq!(
        steps
            .nodes
            .iter()
            .map(|node| node.calls)
            .collect::<Vec<_>>(),
        [1, 2, 1]
    );
}

#[test]
fn a_file_with_wrong_indices_has_a_tree() {
    use SliceKind::{Call, FuturePoll, GpuScope};

    let mut timeline = timeline(&[
        (Call, "itself", Some(0), 10, -5),
        (Call, "later", Some(2), 10, 10),
        (FuturePoll, "poll", Some(9), 10, 10),
        (GpuScope, "of a poll", Some(2), 10, 10),
    ]);
    timeline.slices[1].name = 77;
    timeline.slices[3].track = 9;
    let tree = timeline.call_tree(CallTreeOptions::new().thread(true).stream(true));
    assert!(tree.nodes.iter().all(|node| node.parent.is_none()));
    assert_eq!(tree.nodes.iter().map(|node| node.calls).sum::<u64>(), 3);
    assert_eq!(tree.nodes[0].cpu.map(|cpu| cpu.self_ns), Some(0.0));
}

#[test]
fn deep_recursion_does_not_make_the_tree_deeper() {
    let calls: u32 = 2_000;
    let names = ["even", "odd", "third"];
    let slices: Vec<_> = (0..calls)
        .map(|index| {
            let parent = index.checked_sub(1);
            (
                SliceKind::Call,
                names[index as usize % 3],
                parent,
                i64::from(calls - index),
                1,
            )
        })
        .collect();
    let tree = timeline(&slices).call_tree(CallTreeOptions::new());
    assert!(tree.nodes.len() <= 512, "{}", tree.nodes.len());
    let functions = tree.functions();
    assert_eq!(
        functions.iter().map(|function| function.calls).sum::<u64>(),
        u64::from(calls)
    );
    for (function, total_ns) in functions.iter().zip([2_000.0, 1_999.0, 1_998.0]) {
        assert_eq!(function.primitive_calls, 1);
        assert_eq!(function.cpu.map(|cpu| cpu.total_ns), Some(total_ns));
    }
    let own: f64 = tree
        .nodes
        .iter()
        .filter_map(|node| Some(node.cpu?.self_ns))
        .sum();
    assert!((own - f64::from(calls)).abs() < 1e-6);
    let edge = &tree.edges()[3];
    assert_eq!(
        (edge.caller.as_deref(), &*edge.callee),
        (Some("third"), "even")
    );
    assert_eq!((edge.calls, edge.primitive_calls), (666, 1));
}

#[test]
fn deep_paths_of_different_functions_do_not_make_the_tree_deeper() {
    let calls: u32 = 2_000;
    let names: Vec<String> = (0..calls)
        .map(|depth| format!("f{}", depth % 1_000))
        .collect();
    let slices: Vec<_> = (0..calls)
        .zip(&names)
        .map(|(index, name)| {
            let duration = i64::from(calls - index);
            (SliceKind::Call, &**name, index.checked_sub(1), duration, 1)
        })
        .collect();
    let timeline = timeline(&slices);
    let tree = timeline.call_tree(CallTreeOptions::new());
    let nodes = 0..u32::try_from(tree.nodes.len()).expect("few nodes");
    let deepest = nodes.map(|node| tree.path(node).len()).max();
    assert_eq!(deepest, Some(512));
    let averages = timeline.key_averages();
    for function in tree.functions() {
        let Some(row) = averages.row(&function.name) else {
            assert_eq!((&*function.name, function.calls), ("(other callers)", 0));
            continue;
        };
        let cpu = (row.cpu, function.cpu);
        let (Some(row_cpu), Some(cpu)) = cpu else {
            panic!("both have times: {cpu:?}");
        };
        assert_eq!(
            (function.calls, function.primitive_calls),
            (row.calls, row.primitive_calls),
            "{}",
            function.name
        );
        assert!(
            (cpu.total_ns - row_cpu.total_ns).abs() < 1e-6,
            "{function:?}"
        );
        assert!((cpu.self_ns - row_cpu.self_ns).abs() < 1e-6, "{function:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    #[test]
    fn a_time_line_has_the_functions_and_edges_of_its_calls(program in program(4, 0..60)) {
        let slices: Vec<_> = program
            .iter()
            .map(|call| (SliceKind::Call, NAMES[call.name], call.parent, call.total, call.own))
            .collect();
        let tree = timeline(&slices).call_tree(CallTreeOptions::new());
        let number = |name: &str| NAMES.iter().position(|known| *known == name);
        Model::of(&program).check(&tree, number, 1.0)?;
    }
}

#[test]
fn replays_are_in_the_tree_as_in_key_averages() {
    let mut timeline = Timeline::default();
    timeline.names.push(SliceName {
        text: "captured".into(),
        ..SliceName::default()
    });
    for duration_ns in [70, 30] {
        timeline.replays.push(Replay {
            duration_ns,
            self_ns: 20,
            ..Replay::default()
        });
    }
    let tree = timeline.call_tree(CallTreeOptions::new());
    let averages = timeline.key_averages();
    let cuda = averages.rows[0].cuda.expect("it ran on the GPU");
    let of_tree = tree.nodes[0].cuda.expect("it ran on the GPU");
    assert_eq!((tree.nodes.len(), tree.nodes[0].calls), (1, 0));
    assert_eq!(&*tree.nodes[0].name, "captured");
    assert_eq!((of_tree.total_ns, of_tree.self_ns), (100.0, 40.0));
    assert_eq!((cuda.total_ns, cuda.self_ns), (100.0, 40.0));
}

#[test]
fn work_in_a_gpu_time_is_a_node_where_asked_for_and_no_time_counts_twice() {
    use SliceKind::{Call, GpuScope, GpuWork};

    let timeline = timeline(&[
        (Call, "train", None, 100, 60),
        (Call, "forward", Some(0), 40, 40),
        (GpuScope, "train", Some(0), 90, 90),
        (GpuWork, "sgemm", Some(1), 50, 50),
        (GpuWork, "copy", Some(0), 10, 10),
    ]);
    let cuda = |tree: &CallTree| {
        let nodes = lines(tree).into_iter();
        let own = nodes.map(|(path, _, _, cuda)| (path, cuda.map(|[_, own]| own)));
        own.collect::<Vec<_>>()
    };
    let line = |path: &str, own| (path.to_owned(), own);
    assert_eq!(
        cuda(&timeline.call_tree(CallTreeOptions::new())),
        [line("train", Some(90.0)), line("train/forward", None)]
    );
    assert_eq!(
        cuda(&timeline.call_tree_with_work()),
        [
            line("train", Some(30.0)),
            // As that of any function which launches work and is not measured on the GPU.
            line("train/forward", Some(0.0)),
            line("train/forward/sgemm", Some(50.0)),
            line("train/copy", Some(10.0)),
        ]
    );
}
