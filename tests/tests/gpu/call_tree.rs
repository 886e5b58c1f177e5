//! The call tree of the running statistics has the GPU times of calls on their paths: those of futures, of scopes on
//! other threads, and of replays too.

use profiler_runtime::report::{CallTree, EdgeTimes};
use profiler_runtime::{Handle, MeasureFuture, builder, measure, summary};
use profiler_tests::gpu::{Gpu, driver, exact, finish, on_a_thread};
use profiler_tests::poll::{run, yields};

use crate::support::captures::{begin, end};

/// Returns the GPU times on this path.
#[track_caller]
fn cuda(tree: &CallTree, path: &[&str]) -> EdgeTimes {
    let name = |node: u32| &*tree.nodes[node as usize].name;
    let all = (0..).take(tree.nodes.len());
    let mut nodes = all.filter(|node| {
        tree.path(*node)
            .into_iter()
            .map(name)
            .eq(path.iter().copied())
    });
    let node = nodes.next().expect("the path was called");
    tree.nodes[node as usize].cuda.expect("a GPU time")
}

#[track_caller]
fn check(times: EdgeTimes, total_ns: f64, self_ns: f64) {
    exact(times.total_ns, total_ns);
    exact(times.self_ns, self_ns);
}

/// Each function of the tree has the GPU times of its row.
#[track_caller]
fn check_rows() {
    let summary = summary();
    let functions = summary.call_tree().functions();
    for row in &summary.rows {
        let function = functions.iter().find(|function| *function.name == row.name);
        let times = function
            .and_then(|function| function.cuda)
            .unwrap_or_default();
        let expected = row
            .cuda
            .as_ref()
            .map_or([0.0; 2], |cuda| [cuda.total_ns, cuda.self_ns]);
        check(times, expected[0], expected[1]);
    }
}

#[test(on = driver())]
fn gpu_times_stand_on_the_paths_of_their_calls() {
    let profiler = builder().callers(true).init();
    let _profiler = profiler.expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let layer = |ns: u64| measure!("layer", stream = &stream, { gpu.spin(&stream, ns) });
    measure!("train", stream = &stream, {
        gpu.spin(&stream, 1_000);
        measure!("forward", stream = &stream, {
            gpu.spin(&stream, 2_000);
            layer(10_000);
            layer(20_000);
        });
        let future = async {
            layer(30_000);
            yields(2).await;
            layer(40_000);
        };
        run(future.measure_execution_time("load").stream(&stream));
        let parent = Handle::current();
        on_a_thread(|| {
            let _parent = parent.enter();
            layer(50_000);
        });
    });
    layer(60_000);
    gpu.finish();
    let tree = summary().call_tree();
    check(cuda(&tree, &["train", "forward"]), 32_000.0, 2_000.0);
    check(
        cuda(&tree, &["train", "forward", "layer"]),
        30_000.0,
        30_000.0,
    );
    check(cuda(&tree, &["train", "load"]), 70_000.0, 0.0);
    check(cuda(&tree, &["train", "load", "layer"]), 70_000.0, 70_000.0);
    check(cuda(&tree, &["train", "layer"]), 50_000.0, 50_000.0);
    check(cuda(&tree, &["layer"]), 60_000.0, 60_000.0);
    let edges = tree.edges();
    let train = Some("train".to_owned());
    let of_train = edges.iter().filter(|edge| edge.caller == train);
    assert_eq!(of_train.filter_map(|edge| edge.cuda).count(), 3);
    check_rows();
}

#[test(on = driver().keeps_events())]
fn replays_count_on_the_path_that_was_captured() {
    let profiler = builder().callers(true).init();
    let _profiler = profiler.expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    begin(&stream);
    measure!("build", {
        measure!("replayed", stream = &stream, cuda_graph, {
            gpu.spin(&stream, 10_000)
        });
    });
    let graph = end(&stream);
    for replays in 1..=3 {
        graph.launch().expect("nothing failed");
        finish(&stream);
        let ns = 10_000.0 * f64::from(replays);
        check(cuda(&summary().call_tree(), &["build", "replayed"]), ns, ns);
        check_rows();
    }
}
