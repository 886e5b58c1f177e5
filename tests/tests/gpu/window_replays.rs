//! A window holds the replays of graphs that were captured on purpose, each in one window of a session, the last
//! one before it closed too.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use cudarc::driver::sys::CUgraphInstantiate_flags;
use cudarc::driver::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
use cudarc::driver::{CudaGraph, CudaStream};
use profiler_runtime::{Activity, Profile, Schedule, Trace, init, scope};
use profiler_tests::gpu::{Gpu, exact, is_child, on_the_driver_with, settle};
use profiler_tests::measuring;

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test whose graph keeps its events to the end.
fn is_here_with_a_graph() -> bool {
    if !is_child() && measuring() {
        let ran = on_the_driver_with("", |_| {});
        assert_eq!(ran.report.misuses, []);
        assert_eq!(ran.report.alive.events, 2);
    }
    is_child()
}

fn captured(gpu: &Gpu, stream: &Arc<CudaStream>) -> CudaGraph {
    stream
        .begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED)
        .expect("it may capture");
    {
        let _replayed = scope!("replayed", stream = stream, cuda_graph);
        gpu.spin(stream, 30_000);
    }
    let graph = stream.end_capture(CUgraphInstantiate_flags(0));
    let graph = graph
        .expect("the capture is valid")
        .expect("it captured something");
    settle();
    graph
}

fn replay(graph: &CudaGraph, stream: &CudaStream) {
    graph.launch().expect("nothing failed");
    stream.synchronize().expect("nothing failed");
}

/// How many replays a window has.
fn replays(trace: &Trace) -> usize {
    for (name, span) in trace.replays() {
        assert_eq!(name, "replayed");
        exact(span.ns, 30_000.0);
    }
    trace.replays().count()
}

#[test]
fn each_replay_is_in_the_window_that_was_open() {
    if !is_here_with_a_graph() {
        return;
    }
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let graph = captured(&gpu, &stream);
    let (sender, seen) = mpsc::channel();
    let profile = Profile::builder()
        .schedule(Schedule::new().active(1))
        .on_trace_ready(move |trace: &Trace| sender.send(replays(trace)))
        .start()
        .expect("started");
    let beside = Profile::builder().start().expect("started");
    let without = Profile::builder()
        .activities([Activity::Cpu])
        .start()
        .expect("started");
    for step in 0..30 {
        for _ in 0..step % 3 {
            replay(&graph, &stream);
            settle();
        }
        // The window closes before the resolver has noticed this replay.
        replay(&graph, &stream);
        profile.step();
        assert!(profile.wait(PATIENCE));
    }
    for session in [&profile, &beside, &without] {
        session.stop();
        assert!(session.wait(PATIENCE));
    }
    let mut expected: Vec<usize> = (0..30).map(|step| step % 3 + 1).collect();
    expected.push(0);
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), expected);
    assert_eq!(replays(&beside.trace().expect("a trace")), 60);
    assert_eq!(replays(&without.trace().expect("a trace")), 0);
}

#[test]
fn replays_beyond_the_capacity_are_counted() {
    if !is_here_with_a_graph() {
        return;
    }
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let graph = captured(&gpu, &stream);
    let ((), trace) = Profile::builder().capacity(3).run(|_| {
        for _ in 0..10 {
            replay(&graph, &stream);
            settle();
        }
    });
    let trace = trace.expect("a window");
    assert_eq!((replays(&trace), trace.truncation().over_capacity), (3, 7));
}
