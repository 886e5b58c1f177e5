//! The callers of the running statistics are those of a trace of the same run.

use std::collections::BTreeMap;
use std::thread;

use profiler_runtime::report::{CallEdges, CallFunction, CallTree, CallTreeOptions, Summary};
use profiler_runtime::{Handle, Profile, builder, measure, measured, summary};
use profiler_tests::{measuring, poll, work};

/// The error of conversions of ticks to nanoseconds.
const TOLERANCE: f64 = 0.01;

/// For each pair: calls, primitive calls, total and self time.
type Edges = BTreeMap<(Option<String>, String), (u64, u64, f64, f64)>;

fn edges(of: &CallEdges) -> Edges {
    let edges = of.edges.iter().map(|edge| {
        let times = edge.cpu.expect("CPU times");
        let counts = (
            edge.calls,
            edge.primitive_calls,
            times.total_ns,
            times.self_ns,
        );
        ((edge.caller.clone(), edge.callee.clone()), counts)
    });
    edges.collect()
}

#[measured(name = "callers: leaf")]
fn leaf() {
    work(20);
}

#[measured(name = "callers: recursive")]
fn recursive(depth: u32) {
    leaf();
    if depth > 0 {
        recursive(depth - 1);
        mutual(depth - 1);
    }
}

#[measured(name = "callers: mutual")]
fn mutual(depth: u32) {
    if depth > 0 {
        recursive(depth - 1);
    }
}

#[measured(name = "callers: task")]
async fn task(yields: usize) {
    leaf();
    poll::yields(yields).await;
    leaf();
}

#[measured(name = "callers: threads")]
fn threads(depth: u32) {
    let handle = Handle::current();
    thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                measure!("callers: chunk", parent = handle, {
                    leaf();
                    if depth > 0 {
                        super::callers::threads(depth - 1);
                    }
                });
            });
        }
    });
}

#[test]
fn the_summary_has_the_edges_of_the_trace() {
    let _profiler = builder().callers(true).init();
    if !measuring() {
        return;
    }
    let ((), trace) = Profile::builder().run(|_| {
        for _ in 0..3 {
            measure!("callers: outer", {
                leaf();
                recursive(4);
            });
            poll::run(task(3));
            measure!("callers: polls", { poll::run(task(2)) });
        }
        thread::spawn(|| recursive(2))
            .join()
            .expect("it does not panic");
        threads(1);
    });
    let trace = trace.expect("a window");
    assert!(trace.truncation().is_complete(), "{:?}", trace.truncation());
    let averages = trace.key_averages();
    for (of_summary, of_trace) in [
        (summary().callers(), averages.callers()),
        (summary().key_averages().callees(), averages.callees()),
    ] {
        let (of_summary, of_trace) = (edges(&of_summary), edges(&of_trace));
        let names = |edges: &Edges| edges.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&of_summary), names(&of_trace));
        assert!(of_summary.len() > 8);
        for (edge, one) in &of_summary {
            let other = &of_trace[edge];
            assert_eq!((one.0, one.1), (other.0, other.1), "{edge:?}");
            let is_near =
                |one: f64, other: f64| (one - other).abs() <= one.max(other) * TOLERANCE + 1.0;
            assert!(is_near(one.2, other.2), "{edge:?}: {one:?} {other:?}");
            // Children on other threads are read by clocks of their own: the system may stop a thread in between.
            let has_handle = edge.1 == "callers: threads";
            assert!(
                has_handle || is_near(one.3, other.3),
                "{edge:?}: {one:?} {other:?}"
            );
        }
    }
}

#[test]
fn the_edges_of_a_name_add_up_to_its_row() {
    let _profiler = builder().callers(true).init();
    if !measuring() {
        return;
    }
    recursive(3);
    thread::spawn(|| threads(0))
        .join()
        .expect("it does not panic");
    let summary = summary();
    for row in &summary.rows {
        let callers = summary.callers();
        let edges = callers.edges.iter().filter(|edge| edge.callee == row.name);
        let (calls, own) = edges.fold((0, 0.0), |(calls, own), edge| {
            (
                calls + edge.calls,
                own + edge.cpu.map_or(0.0, |cpu| cpu.self_ns),
            )
        });
        assert_eq!(calls, row.calls, "{}", row.name);
        let self_ns = row.cpu.map_or(0.0, |cpu| cpu.self_ns);
        assert!(
            (own - self_ns).abs() <= 1.0 + self_ns * TOLERANCE,
            "{}",
            row.name
        );
    }
}

#[test]
fn callers_are_not_counted_unless_they_are_asked_for() {
    recursive(1);
    let callers = summary().callers();
    assert!(callers.edges.is_empty());
    let text = "callers are not counted: set PROFILER_CALLERS=1 or `Builder::callers(true)`, or take them \
                from the trace of a session\n";
    assert_eq!(callers.to_string(), text);
}

/// Calls each name from each other one, and from none, so many times.
fn call_each_other(names: &[String], times: u64) {
    for _ in 0..times {
        for outer in names {
            measure!(outer, {
                for inner in names {
                    measure!(inner, {});
                }
            });
        }
    }
}

fn names(count: u32) -> Vec<String> {
    (0..count)
        .map(|name| format!("callers: name {name}"))
        .collect()
}

/// Returns how often the summary says that there are too many of these.
fn said(summary: &Summary, what: &str) -> usize {
    let notices = summary.notices.iter();
    notices.filter(|notice| notice.contains(what)).count()
}

#[test]
fn paths_beyond_the_bound_are_counted_by_caller_and_callee() {
    let _profiler = builder().callers(true).init();
    if !measuring() {
        return;
    }
    // 140 names call each other: 19,740 paths, of which 16,384 are counted.
    let names = names(140);
    // Twice: a path that is counted with others is found again.
    call_each_other(&names, 2);
    let summary = summary();
    let callers = summary.callers();
    assert_eq!(callers.edges.len(), 140 * 141);
    assert!(callers.edges.iter().all(|edge| edge.calls == 2));
    let tree = summary.call_tree();
    let beyond = tree.nodes.iter().filter(|node| node.is_caller_only).count();
    assert!(beyond > 0 && tree.nodes.len() == 140 * 141 + 1 + beyond);
    let cut = tree.nodes.iter().filter(|node| node.is_cut);
    assert!(cut.clone().count() >= beyond && cut.clone().all(|node| node.parent.is_none()));
    let functions = tree.functions();
    for row in &summary.rows {
        let function = functions.iter().find(|function| *function.name == row.name);
        let function = function.expect("all were called");
        assert_eq!(function.calls, row.calls);
        assert_eq!(function.primitive_calls, row.primitive_calls);
        let (of_tree, of_row) = (
            function.cpu.expect("times"),
            row.cpu.as_ref().expect("times"),
        );
        for (one, other) in [
            (of_tree.total_ns, of_row.total_ns),
            (of_tree.self_ns, of_row.self_ns),
        ] {
            assert!((one - other).abs() <= 300.0, "{one} {other}");
        }
    }
    assert_eq!(said(&summary, "call paths"), 1);
    assert_eq!(said(&summary, "pairs of caller and callee"), 0);
}

#[test]
fn pairs_beyond_the_bound_have_one_caller() {
    let _profiler = builder().callers(true).init();
    if !measuring() {
        return;
    }
    // 300 names call each other: 90,300 paths. 16,384 are followed, and those of names that nothing called; 65,536 of the
    // other pairs are counted.
    let names = names(300);
    call_each_other(&names, 1);
    let summary = summary();
    let callers = summary.callers();
    let calls: u64 = callers.edges.iter().map(|edge| edge.calls).sum();
    assert_eq!(calls, 300 * 301, "no call is lost");
    let others = callers.edges.iter();
    let others = others.filter(|edge| edge.caller.as_deref() == Some("(other callers)"));
    let others: u64 = others.map(|edge| edge.calls).sum();
    let most = 300 * 301 - 16_384 - 65_536;
    assert!((most - 300..=most).contains(&others), "{others}");
    for what in ["call paths", "pairs of caller and callee"] {
        assert_eq!(said(&summary, what), 1);
    }
}

#[test]
fn the_tree_of_the_summary_has_the_functions_of_the_trace() {
    let _profiler = builder().callers(true).init();
    if !measuring() {
        return;
    }
    let ((), trace) = Profile::builder().run(|_| {
        for _ in 0..2 {
            measure!("callers: outer", { recursive(5) });
            poll::run(task(3));
        }
        threads(2);
    });
    let trace = trace.expect("a window");
    let (of_summary, of_trace) = (
        summary().call_tree(),
        trace.timeline().call_tree(CallTreeOptions::new()),
    );
    // The trace has a node for each recursive call.
    assert!(of_trace.nodes.len() > of_summary.nodes.len());
    let functions = |tree: &CallTree| {
        let functions = tree.functions().into_iter();
        let function = |function: CallFunction| {
            let times = function.cpu.expect("CPU times");
            let counts = (function.calls, function.primitive_calls);
            (function.name, (counts, times))
        };
        functions.map(function).collect::<BTreeMap<_, _>>()
    };
    let (of_summary, of_trace) = (functions(&of_summary), functions(&of_trace));
    assert_eq!(of_summary.len(), of_trace.len());
    for (name, (counts, times)) in &of_summary {
        let (other_counts, other_times) = &of_trace[name];
        assert_eq!(counts, other_counts, "{name}");
        let is_near =
            |one: f64, other: f64| (one - other).abs() <= one.max(other) * TOLERANCE + 1.0;
        assert!(
            is_near(times.total_ns, other_times.total_ns),
            "{name}: {times:?} {other_times:?}"
        );
    }
}

#[test]
fn the_sums_of_the_tree_are_those_of_the_rows() {
    thread_local! {
        static AT_EXIT: AtExit = const { AtExit };
    }
    struct AtExit;
    impl Drop for AtExit {
        fn drop(&mut self) {
            leaf();
            poll::run(task(1));
        }
    }

    let _profiler = builder().callers(true).init();
    if !measuring() {
        return;
    }
    recursive(6);
    // Calls at the end of a thread, and calls that outlive it, have no caller, but are not lost.
    thread::spawn(|| {
        AT_EXIT.with(|_| ());
        measure!("callers: outer", { leaf() });
    })
    .join()
    .expect("it does not panic");
    let summary = summary();
    let functions = summary.call_tree().functions();
    assert_eq!(functions.len(), summary.rows.len());
    for row in &summary.rows {
        let function = functions.iter().find(|function| *function.name == row.name);
        let function = function.expect("all were called");
        assert_eq!(function.calls, row.calls, "{}", row.name);
        assert_eq!(
            function.primitive_calls, row.primitive_calls,
            "{}",
            row.name
        );
        let (of_tree, of_row) = (
            function.cpu.expect("times"),
            row.cpu.as_ref().expect("times"),
        );
        assert!(
            (of_tree.total_ns - of_row.total_ns).abs() <= 1.0,
            "{}",
            row.name
        );
        let is_near = (of_tree.self_ns - of_row.self_ns).abs() <= 10.0;
        assert!(is_near, "{}: {of_tree:?} {of_row:?}", row.name);
    }
}
