//! A window holds the replays of graphs that were captured on purpose, each in one window of a session, the last
//! one before it closed too.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::captures::{begin, end};
use cudarc::driver::{CudaGraph, CudaStream};
use profiler_runtime::{Activity, Profile, Schedule, Trace, scope};
use profiler_tests::gpu::{Gpu, OnDriver, driver, exact, settle, started};
use profiler_tests::stop;

const PATIENCE: Duration = Duration::from_secs(60);

/// The graph of the test keeps its events to the end.
fn with_a_graph() -> OnDriver {
    driver().keeps(2)
}

fn captured(gpu: &Gpu, stream: &Arc<CudaStream>) -> CudaGraph {
    begin(stream);
    {
        let _replayed = scope!("replayed", stream = stream, cuda_graph);
        gpu.spin(stream, 30_000);
    }
    let graph = end(stream);
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

#[test(on = with_a_graph())]
fn each_replay_is_in_the_window_that_was_open() {
    let (_profiler, gpu, stream) = started();
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
        stop(session);
    }
    let mut expected: Vec<usize> = (0..30).map(|step| step % 3 + 1).collect();
    expected.push(0);
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), expected);
    assert_eq!(replays(&beside.trace().expect("a trace")), 60);
    assert_eq!(replays(&without.trace().expect("a trace")), 0);
}

#[test(on = with_a_graph())]
fn replays_beyond_the_capacity_are_counted() {
    let (_profiler, gpu, stream) = started();
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
