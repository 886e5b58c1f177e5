//! `captured = true`: what a scope launches into a graph is measured whenever the graph runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::captures::{MODES, begin, end, nodes, spoiled};
use cudarc::driver::sys::CUstreamCaptureMode::{
    CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED,
};
use cudarc::driver::{CudaGraph, CudaStream};
use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::{measure_execution_time, scope, summary};
use profiler_tests::gpu::{
    Gpu, OnDriver, cuda, driver, exact, finish, lost, row, settle, simulator, started,
};

/// The graphs of the test keep the events of `scopes` scopes to the end.
fn with_graphs(scopes: u64) -> OnDriver {
    driver().keeps(2 * scopes)
}

#[test(on = with_graphs(3))]
fn each_replay_of_what_was_captured_on_purpose_is_measured() {
    let (_profiler, gpu, stream) = started();
    for (round, mode) in MODES.into_iter().enumerate() {
        stream.begin_capture(mode).expect("it may capture");
        {
            let _replayed = scope!(format!("replayed {round}"), stream = &stream, cuda_graph);
            gpu.spin(&stream, 10_000);
            gpu.spin(&stream, 20_000);
        }
        gpu.spin(&stream, 40_000);
        let graph = end(&stream);
        assert_eq!(nodes(&graph), 5, "two kernels, one more, and the two ends");
        settle();
        assert!(
            row(&format!("replayed {round}")).cuda.is_none(),
            "it has not run"
        );
        for replay in 1..=5 {
            graph.launch().expect("nothing failed");
            finish(&stream);
            let times = cuda(&format!("replayed {round}"));
            assert_eq!(times.calls, replay);
            exact(times.total_ns, 30_000.0 * replay as f64);
            exact(times.self_ns, 30_000.0 * replay as f64);
            settle();
            assert_eq!(
                cuda(&format!("replayed {round}")).calls,
                replay,
                "counted once"
            );
        }
    }
    assert_eq!(summary().cuda.lost, []);
    assert_eq!(spoiled(), 0);
}

#[test(on = with_graphs(3 + 1))]
fn a_replay_of_a_recursive_call_is_in_the_total_once() {
    #[measure_execution_time(name = "recursive", stream = stream, cuda_graph)]
    fn recursive(gpu: &Gpu, stream: &Arc<CudaStream>, depth: u64) {
        gpu.spin(stream, 10_000);
        if depth > 1 {
            recursive(gpu, stream, depth - 1);
        }
    }
    let (_profiler, gpu, stream) = started();
    let capture = |depth| {
        let mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        stream.begin_capture(mode).expect("it may capture");
        recursive(&gpu, &stream, depth);
        end(&stream)
    };
    let graph = capture(3);
    // Inside a call of its name that is not part of the graph.
    let inside = {
        let _outer = scope!("recursive");
        capture(1)
    };
    for (graph, scopes, total) in [(&graph, 3, 30_000.0), (&inside, 4, 40_000.0)] {
        graph.launch().expect("nothing failed");
        finish(&stream);
        let times = cuda("recursive");
        assert_eq!(times.calls, scopes);
        exact(times.total_ns, total);
        exact(times.self_ns, total);
    }
    assert_eq!(spoiled(), 0);
}

#[test(on = with_graphs(1))]
fn each_replay_reaches_the_logger_of_the_captured_call() {
    let (profiler, gpu, stream) = started();
    begin(&stream);
    let (logged, entries) = std::sync::mpsc::channel();
    {
        // The closure owns a value, so it belongs to this call alone.
        let log = move |_: &str, milliseconds: f64, step: u64| logged.send((milliseconds, step));
        let _replayed = scope!("replayed", stream = &stream, cuda_graph, log = log);
        gpu.spin(&stream, 10_000);
    }
    let graph = end(&stream);
    for _ in 0..3 {
        graph.launch().expect("nothing failed");
        finish(&stream);
    }
    drop(profiler);
    let mut steps = Vec::new();
    for (milliseconds, step) in entries.try_iter() {
        exact(milliseconds * 1e6, 10_000.0);
        steps.push(step);
    }
    // Step 0 is the captured call itself, which has no GPU time.
    assert_eq!(steps, [1, 2, 3]);
    assert_eq!(summary().dropped, []);
}

#[test(on = with_graphs(1))]
fn replays_that_follow_each_other_are_told_apart() {
    let (_profiler, gpu, stream) = started();
    begin(&stream);
    {
        let _replayed = scope!("replayed", stream = &stream, cuda_graph);
        gpu.spin(&stream, 10_000);
    }
    let graph = end(&stream);
    let replay = || {
        graph.launch().expect("nothing failed");
        stream.synchronize().expect("nothing failed");
    };
    // Without a flush: the resolver finds each replay by itself, and the next one begins once it has.
    for count in 1..=10 {
        replay();
        while cuda("replayed").calls < count {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(cuda("replayed").calls, count);
    }
    settle();
    assert_eq!(cuda("replayed").calls, 10);
    exact(cuda("replayed").max_ns, 10_000.0);
    assert_eq!(summary().cuda.lost, []);
}

#[test(on = with_graphs(1))]
fn a_new_anchor_is_no_replay() {
    let (_profiler, gpu, stream) = started();
    stream
        .begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL)
        .expect("it may capture");
    {
        let _replayed = scope!("replayed", stream = &stream, cuda_graph);
        gpu.spin(&stream, 10_000);
    }
    let graph = end(&stream);
    for replay in 1..=3 {
        graph.launch().expect("nothing failed");
        finish(&stream);
        let records = simulator().calls("cuEventRecord");
        std::thread::sleep(Duration::from_millis(1_200));
        settle();
        assert!(
            simulator().calls("cuEventRecord") > records,
            "the anchor was taken anew"
        );
        assert_eq!(cuda("replayed").calls, replay);
    }
    exact(cuda("replayed").total_ns, 30_000.0);
}

/// As many scopes as there may be in the graphs of a context, with a kernel in each, in one graph.
fn capture_many(gpu: &Gpu, stream: &Arc<CudaStream>) -> CudaGraph {
    begin(stream);
    for number in 0..MANY {
        let _replayed = scope!(format!("replayed {number}"), stream = stream, cuda_graph);
        gpu.spin(stream, 10_000);
    }
    end(stream)
}

const MANY: u64 = 256;

fn questions() -> u64 {
    let calls = [
        "cuEventElapsedTime",
        "cuEventElapsedTime_v2",
        "cuEventQuery",
    ];
    calls
        .map(|name| simulator().calls(name).unwrap_or(0))
        .iter()
        .sum()
}

#[test(on = with_graphs(MANY))]
fn a_graph_that_has_not_run_is_seldom_asked_for() {
    let (_profiler, gpu, stream) = started();
    let graph = capture_many(&gpu, &stream);
    settle();
    let (before, start) = (questions(), Instant::now());
    // Until the resolver has come by for certain, however slow the machine is.
    while questions() - before < 2 {
        std::thread::sleep(Duration::from_millis(100));
    }
    let asked = questions() - before;
    // It comes by every 16 ms at most, and asks for a few of the scopes each time, not for all.
    let rounds = 2 + start.elapsed().as_millis() / 16;
    assert!(
        u128::from(asked) < 6 * rounds,
        "asked {asked} times in {rounds} rounds for graphs that never ran"
    );
    graph.launch().expect("nothing failed");
    finish(&stream);
    for number in 0..MANY {
        let times = cuda(&format!("replayed {number}"));
        assert_eq!((times.calls, times.total_ns), (1, times.max_ns));
        exact(times.max_ns, 10_000.0);
    }
}

#[test(on = with_graphs(MANY))]
fn replays_of_many_scopes_are_found_by_few_questions() {
    const REPLAYS: u64 = 30;

    let (_profiler, gpu, stream) = started();
    let graph = capture_many(&gpu, &stream);
    let (before, start) = (questions(), Instant::now());
    for replay in 1..=REPLAYS {
        graph.launch().expect("nothing failed");
        finish(&stream);
        std::thread::sleep(Duration::from_millis(6));
        assert_eq!(cuda("replayed 0").calls, replay);
        assert_eq!(cuda("replayed 255").calls, replay);
    }
    // To read a replay takes three for each scope; to find that there is none, two; and a new anchor, each second, two
    // for each scope.
    let (asked, seconds) = (questions() - before, start.elapsed().as_secs());
    let looks = 20 * u64::try_from(start.elapsed().as_millis()).expect("a short time");
    let most = 4 * MANY * REPLAYS + 2 * MANY * (seconds + 2) + looks;
    assert!(asked < most, "asked {asked} times, not {most}");
}

#[test(on = with_graphs(2))]
fn scopes_inside_of_what_is_replayed_are_not_their_parents_own_time() {
    let (_profiler, gpu, stream) = started();
    begin(&stream);
    {
        let _outer = scope!("outer", stream = &stream, cuda_graph);
        gpu.spin(&stream, 10_000);
        let _inner = scope!("inner", stream = &stream, cuda_graph);
        gpu.spin(&stream, 20_000);
    }
    let graph = end(&stream);
    for _ in 0..4 {
        graph.launch().expect("nothing failed");
        finish(&stream);
    }
    exact(cuda("outer").total_ns, 120_000.0);
    exact(cuda("inner").total_ns, 80_000.0);
    exact(cuda("inner").self_ns, 80_000.0);
    exact(cuda("outer").self_ns, 40_000.0);
}

#[test(on = driver())]
fn a_cuda_graph_scope_outside_of_a_capture_is_measured_normally() {
    let (_profiler, gpu, stream) = started();
    for _ in 0..3 {
        let _scope = scope!("either", stream = &stream, cuda_graph = true);
        gpu.spin(&stream, 10_000);
    }
    begin(&stream);
    {
        let _scope = scope!("neither", stream = &stream, cuda_graph = false);
        gpu.spin(&stream, 10_000);
    }
    let graph = end(&stream);
    assert_eq!(nodes(&graph), 1);
    finish(&stream);
    exact(cuda("either").total_ns, 30_000.0);
    assert_eq!(
        (row("neither").without_cuda, lost(CudaLoss::Captured)),
        (1, 1)
    );
}
