use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use proptest::prelude::*;

use super::*;
use crate::local::callers;
use crate::name;
use crate::report::timeline::{Replay, Slice, SliceKind, SliceName, Step, Timeline, Track};

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
            slice: None,
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

/// Calls, primitive calls, and their total and self time.
type Counts = (u64, u64, f64, f64);

/// One call of a random program.
#[derive(Clone, Copy, Debug)]
struct Call {
    name: usize,
    parent: Option<u32>,
    total: i64,
    own: i64,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Returns the calls of a random program in the order in which they begin. In each instant one call has self time.
fn program() -> impl Strategy<Value = Vec<Call>> {
    // For each call: how many of the calls around it end first, and its name.
    let calls = prop::collection::vec((0..3_usize, 0..NAMES.len()), 0..60);
    calls.prop_map(|calls| {
        let mut open: Vec<u32> = Vec::new();
        let mut program: Vec<Call> = Vec::new();
        for (index, (left, name)) in (0..).zip(calls) {
            open.truncate(open.len().saturating_sub(left));
            let parent = open.last().copied();
            if let Some(parent) = parent {
                program[parent as usize].own += 2;
            }
            for around in &open {
                program[*around as usize].total += 5;
            }
            let (total, own) = (3, 3);
            program.push(Call {
                name,
                parent,
                total,
                own,
            });
            open.push(index);
        }
        program
    })
}

/// The functions and edges of a program, found without a tree: each call looks at all calls around it.
struct Model {
    functions: HashMap<usize, Counts>,
    edges: HashMap<(Option<usize>, usize), Counts>,
}

impl Model {
    fn of(program: &[Call]) -> Self {
        let mut model = Self {
            functions: HashMap::new(),
            edges: HashMap::new(),
        };
        let edge = |call: &Call| (call.parent.map(|at| program[at as usize].name), call.name);
        for call in program {
            let caller = |call: &&Call| call.parent.map(|at| &program[at as usize]);
            let around: Vec<&Call> = std::iter::successors(Some(call), caller).skip(1).collect();
            let count = |counts: &mut Counts, is_primitive: bool| {
                counts.0 += 1;
                counts.1 += u64::from(is_primitive);
                counts.2 += if is_primitive { call.total as f64 } else { 0.0 };
                counts.3 += call.own as f64;
            };
            let is_primitive = around.iter().all(|other| other.name != call.name);
            count(model.functions.entry(call.name).or_default(), is_primitive);
            let is_primitive = around.iter().all(|other| edge(other) != edge(call));
            count(model.edges.entry(edge(call)).or_default(), is_primitive);
        }
        model
    }

    /// Checks a tree whose functions are called as `number` says, in times of `unit` nanoseconds.
    fn check(
        &self,
        tree: &CallTree,
        number: impl Fn(&str) -> Option<usize>,
        unit: f64,
    ) -> Result<(), TestCaseError> {
        let near =
            |found: f64, expected: f64| (found - expected * unit).abs() < 1e-6 * (1.0 + found);
        let check = |found: (u64, u64, EdgeTimes), expected: &Counts| {
            prop_assert_eq!((found.0, found.1), (expected.0, expected.1));
            prop_assert!(
                near(found.2.total_ns, expected.2),
                "{:?} {:?}",
                found,
                expected
            );
            prop_assert!(
                near(found.2.self_ns, expected.3),
                "{:?} {:?}",
                found,
                expected
            );
            Ok(())
        };
        let mut functions = 0;
        for function in tree.functions() {
            if let Some(name) = number(&function.name) {
                let found = (
                    function.calls,
                    function.primitive_calls,
                    function.cpu.unwrap(),
                );
                check(found, &self.functions[&name])?;
                functions += 1;
            }
        }
        prop_assert_eq!(functions, self.functions.len());
        let mut edges = 0;
        for edge in tree.edges() {
            if let Some(name) = number(&edge.callee) {
                let caller = edge.caller.as_deref().map(|caller| number(caller).unwrap());
                let found = (edge.calls, edge.primitive_calls, edge.cpu.unwrap());
                check(found, &self.edges[&(caller, name)])?;
                edges += 1;
            }
        }
        prop_assert_eq!(edges, self.edges.len());
        for (index, node) in (0..).zip(&tree.nodes) {
            prop_assert!(node.parent.is_none_or(|parent| parent < index));
            prop_assert_eq!(tree.path(index).last().copied(), Some(index));
        }
        Ok(())
    }
}

/// Runs a program with the running statistics, on a thread of its own. Its functions have these names.
fn run(program: Vec<Call>, names: [u32; NAMES.len()]) {
    let run = move || {
        let close = |serial: u64| {
            let call = &program[usize::try_from(serial).unwrap() - 1];
            let caller = |call: &&Call| call.parent.map(|at| &program[at as usize]);
            let mut around = std::iter::successors(Some(call), caller).skip(1);
            let is_outermost = around.all(|other| other.name != call.name);
            let times = (call.total, call.own);
            callers::closed(names[call.name], serial, times, is_outermost);
        };
        let mut open: Vec<u64> = Vec::new();
        for (serial, call) in (1..).zip(&program) {
            let parent = call.parent.map_or(0, |parent| u64::from(parent) + 1);
            while let Some(inner) = open.pop_if(|inner| *inner > parent) {
                close(inner);
            }
            callers::opened(names[call.name], serial, parent);
            open.push(serial);
        }
        open.into_iter().rev().for_each(close);
    };
    std::thread::spawn(run).join().expect("does not panic");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    #[test]
    fn a_time_line_has_the_functions_and_edges_of_its_calls(program in program()) {
        let slices: Vec<_> = program
            .iter()
            .map(|call| (SliceKind::Call, NAMES[call.name], call.parent, call.total, call.own))
            .collect();
        let tree = timeline(&slices).call_tree(CallTreeOptions::new());
        let number = |name: &str| NAMES.iter().position(|known| *known == name);
        Model::of(&program).check(&tree, number, 1.0)?;
    }
}

proptest! {
    // Each case has names of its own, and the number of paths is bounded.
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 60 }))]

    #[test]
    fn the_statistics_have_the_functions_and_edges_of_their_calls(program in program()) {
        static CASES: AtomicUsize = AtomicUsize::new(0);
        let case = CASES.fetch_add(1, Relaxed);
        let texts = NAMES.map(|name| format!("call tree: {case} {name}"));
        let names = [0, 1, 2, 3].map(|index: usize| {
            name::declared(&texts[index], std::panic::Location::caller()).id
        });
        run(program.clone(), names);
        // There is none before the first call, and a program may have none.
        let tree = CallTree::of_statistics().unwrap_or_default();
        let number = |name: &str| texts.iter().position(|known| *known == name);
        let model = Model::of(&program);
        model.check(&tree, number, crate::clock::clock().nanoseconds(1.0))?;
        // No path has a pair of caller and callee twice.
        for index in (0..).take(tree.nodes.len()) {
            let path = tree.path(index);
            let pairs: Vec<_> = path.windows(2).map(|pair| [0, 1].map(|at| &*tree.nodes[pair[at] as usize].name)).collect();
            let distinct: HashSet<_> = pairs.iter().collect();
            prop_assert_eq!(distinct.len(), pairs.len());
        }
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
