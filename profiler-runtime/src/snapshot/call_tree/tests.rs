#[path = "../../../../crates/report/src/call_tree/tests/program.rs"]
mod program;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use profiler_report::EdgeTimes;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use self::program::{Call, Model, NAMES, program};
use super::*;
use crate::local::{Innermost, callers};

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
            callers::opened(names[call.name], serial, Innermost::new(parent));
            open.push(serial);
        }
        open.into_iter().rev().for_each(close);
    };
    std::thread::spawn(run).join().expect("does not panic");
}

/// Runs a program whose functions have these names. Returns the tree of the statistics, which has its functions and edges.
fn tree_of(program: &[Call], texts: &[String; NAMES.len()]) -> Result<CallTree, TestCaseError> {
    let names = texts.each_ref();
    let names = names.map(|text| name::declared(text, std::panic::Location::caller()).id);
    run(program.to_vec(), names);
    // There is none before the first call, and a program may have none.
    let tree = of_statistics().unwrap_or_default();
    let number = |name: &str| texts.iter().position(|known| *known == name);
    let model = Model::of(program);
    model.check(&tree, number, crate::clock::clock().nanoseconds(1.0))?;
    Ok(tree)
}

/// Programs with more paths than are counted.
#[cfg_attr(miri, ignore = "takes long")]
#[test]
fn calls_on_paths_beyond_the_bound_have_their_caller_and_their_times() {
    static CASES: AtomicUsize = AtomicUsize::new(0);
    // How many callers of calls beyond the bound there were in all cases: a single program may have few paths.
    static BEYOND: AtomicUsize = AtomicUsize::new(0);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(3));
    let programs = program(NAMES.len(), 40_000..40_001);
    let checked = runner.run(&programs, |program| {
        let case = CASES.fetch_add(1, Relaxed);
        let texts = NAMES.map(|name| format!("call tree: beyond {case} {name}"));
        let tree = tree_of(&program, &texts)?;
        // The tree says where paths end, and who called what is beyond.
        let callers: Vec<_> = tree
            .nodes
            .iter()
            .filter(|node| node.is_caller_only)
            .collect();
        BEYOND.fetch_add(callers.len(), Relaxed);
        prop_assert!(
            callers
                .iter()
                .all(|caller| caller.calls == 0 && caller.cpu.is_none())
        );
        let is_cut = tree.nodes.iter().any(|node| node.is_cut && node.calls > 0);
        prop_assert_eq!(is_cut, !callers.is_empty());
        Ok(())
    });
    checked.expect("all calls are counted");
    assert!(
        BEYOND.load(Relaxed) >= NAMES.len(),
        "some paths are beyond the bound"
    );
}

proptest! {
    // Each case has names of its own, and the number of paths is bounded.
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 60 }))]

    #[test]
    fn the_statistics_have_the_functions_and_edges_of_their_calls(program in program(4, 0..60)) {
        static CASES: AtomicUsize = AtomicUsize::new(0);
        let case = CASES.fetch_add(1, Relaxed);
        let texts = NAMES.map(|name| format!("call tree: {case} {name}"));
        let tree = tree_of(&program, &texts)?;
        // No path has a pair of caller and callee twice.
        for index in (0..).take(tree.nodes.len()) {
            let path = tree.path(index);
            let pairs: Vec<_> = path.windows(2).map(|pair| [0, 1].map(|at| &*tree.nodes[pair[at] as usize].name)).collect();
            let distinct: HashSet<_> = pairs.iter().collect();
            prop_assert_eq!(distinct.len(), pairs.len());
        }
    }
}
