//! Captures turn work into graphs, and are invalidated by the calls that invalidate them on a real
//! driver.

use std::thread;

use crate::support::{Driver, NON_BLOCKING, PER_THREAD, made};

const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;

fn capturing(driver: &Driver, mode: u32) -> usize {
    let stream = driver.stream(NON_BLOCKING);
    assert_eq!(driver.cuStreamBeginCapture_v2(stream, mode), 0);
    stream
}

fn status(driver: &Driver, stream: usize) -> u32 {
    made(|status| driver.cuStreamIsCapturing(stream, status))
}

fn on_another_thread(call: impl FnOnce() -> u32 + Send) -> u32 {
    thread::scope(|scope| scope.spawn(call).join().expect("no panic"))
}

#[test]
fn captured_work_runs_with_each_launch_of_the_graph() {
    let driver = Driver::ready();
    let (kernel, stream) = (driver.kernel("work_10us"), capturing(&driver, GLOBAL));
    assert_eq!(status(&driver, stream), 1);
    assert_eq!(
        (driver.launch(kernel, stream), driver.launch(kernel, stream)),
        (0, 0)
    );
    let graph: usize = made(|graph| driver.cuStreamEndCapture(stream, graph));
    assert_eq!(status(&driver, stream), 0);
    assert_eq!(driver.report().kernels().count(), 0);
    let exec: usize = made(|exec| driver.cuGraphInstantiateWithFlags(exec, graph, 0));
    let before = driver.now();
    assert_eq!(
        (
            driver.cuGraphLaunch(exec, stream),
            driver.cuGraphLaunch(exec, stream)
        ),
        (0, 0)
    );
    assert_eq!(driver.cuStreamSynchronize(stream), 0);
    assert_eq!(driver.now() - before, 40_000);
    let report = driver.report();
    assert!(
        report
            .kernels()
            .all(|kernel| kernel.graph == Some(exec as u64))
    );
    assert_eq!(report.kernels().count(), 4);
    assert_eq!(
        (
            driver.cuGraphExecDestroy(exec),
            driver.cuGraphDestroy(graph)
        ),
        (0, 0)
    );
    assert_eq!(
        (
            driver.report().alive.graphs,
            driver.report().alive.graph_execs
        ),
        (0, 0)
    );
}

#[test]
fn an_event_recorded_in_a_capture_has_no_time() {
    let driver = Driver::ready();
    let (event, stream) = (driver.event(), capturing(&driver, RELAXED));
    assert_eq!(driver.cuEventRecord(event, stream), 0);
    assert_eq!(driver.cuEventQuery(event), 907);
    assert_eq!(driver.cuEventSynchronize(event), 907);
    assert_eq!(driver.cuEventElapsedTime(&mut 0.0, event, event), 907);
    assert_eq!(
        status(&driver, stream),
        2,
        "to ask for it spoils the capture"
    );
    assert_eq!(driver.cuStreamEndCapture(stream, &mut 0), 901);
    assert_eq!(
        driver.cuEventQuery(event),
        907,
        "until it is recorded again"
    );
    assert_eq!(driver.cuEventRecord(event, stream), 0);
    assert_eq!(driver.cuEventQuery(event), 0);
}

#[test]
fn an_external_event_is_recorded_by_each_launch() {
    let driver = Driver::ready();
    let (kernel, start, end) = (driver.kernel("work_10us"), driver.event(), driver.event());
    let stream = capturing(&driver, GLOBAL);
    assert_eq!(driver.cuEventRecordWithFlags(start, stream, 1), 0);
    assert_eq!(driver.launch(kernel, stream), 0);
    assert_eq!(driver.cuEventRecordWithFlags(end, stream, 1), 0);
    let graph: usize = made(|graph| driver.cuStreamEndCapture(stream, graph));
    assert_eq!(
        made::<usize>(|count| driver.cuGraphGetNodes(graph, std::ptr::null_mut(), count)),
        3
    );
    let exec: usize = made(|exec| driver.cuGraphInstantiateWithFlags(exec, graph, 0));
    let mut ms = 0.0;
    assert_eq!(
        driver.cuEventElapsedTime(&raw mut ms, start, end),
        400,
        "nothing ran yet"
    );
    for _ in 0..2 {
        assert_eq!(driver.cuGraphLaunch(exec, stream), 0);
        assert_eq!(driver.cuEventQuery(end), 600);
        assert_eq!(driver.cuEventSynchronize(end), 0);
        assert!((driver.ns(start, end) - 10_000.0).abs() < 0.5);
    }
    assert_eq!(driver.report().event_records().count(), 4);
    assert_eq!(
        driver.cuEventRecordWithFlags(end, stream, 1),
        1,
        "only in a capture"
    );
}

#[test]
fn a_query_invalidates_a_global_capture_of_another_thread() {
    let driver = Driver::ready();
    let (event, stream) = (driver.recorded(0), capturing(&driver, GLOBAL));
    assert_eq!(on_another_thread(|| driver.cuEventQuery(event)), 900);
    assert_eq!(status(&driver, stream), 2);
    assert_eq!(driver.cuEventRecord(event, stream), 901);
    let mut graph = 7;
    assert_eq!(driver.cuStreamEndCapture(stream, &raw mut graph), 901);
    assert_eq!((graph, status(&driver, stream)), (0, 0));
    assert_eq!(driver.report().captures_invalidated, 1);
}

#[test]
fn a_query_by_a_relaxed_thread_invalidates_no_capture() {
    let driver = Driver::ready();
    let (event, stream) = (driver.recorded(0), capturing(&driver, GLOBAL));
    let relaxed = || {
        let mut mode = RELAXED;
        assert_eq!(driver.cuThreadExchangeStreamCaptureMode(&raw mut mode), 0);
        assert_eq!(mode, GLOBAL);
        driver.cuEventQuery(event)
    };
    assert_eq!(on_another_thread(relaxed), 0);
    assert_eq!(status(&driver, stream), 1);
}

#[test]
fn captures_of_other_modes_allow_queries_by_other_threads() {
    let driver = Driver::ready();
    let event = driver.recorded(0);
    for (mode, own) in [(THREAD_LOCAL, 900), (RELAXED, 0)] {
        let stream = capturing(&driver, mode);
        assert_eq!(on_another_thread(|| driver.cuEventQuery(event)), 0);
        assert_eq!(status(&driver, stream), 1);
        assert_eq!(driver.cuEventQuery(event), own);
        driver.cuStreamEndCapture(stream, &mut 0);
    }
}

#[test]
fn the_legacy_stream_must_not_wait_for_a_capturing_stream() {
    let driver = Driver::ready();
    let (kernel, event, stream) = (driver.kernel("work_10us"), driver.event(), driver.stream(0));
    // Work that would wait invalidates the capture. A query does not, according to the manual.
    for (call, end) in [
        (&|| driver.launch(kernel, 0), 901),
        (&|| driver.cuEventRecord(event, 0), 901),
        (&|| driver.cuStreamIsCapturing(0, &mut 0), 0),
    ] as [(&dyn Fn() -> u32, u32); 3]
    {
        assert_eq!(driver.cuStreamBeginCapture_v2(stream, RELAXED), 0);
        assert_eq!(call(), 906);
        assert_eq!(driver.cuStreamEndCapture(stream, &mut 0), end);
    }
    let stream = capturing(&driver, RELAXED);
    assert_eq!(
        driver.launch(kernel, 0),
        0,
        "a non-blocking stream does not matter to it"
    );
    assert_eq!(status(&driver, stream), 1);
    assert_eq!(driver.cuStreamBeginCapture_v2(0, RELAXED), 900);
    assert_eq!(driver.cuStreamBeginCapture_v2(stream, RELAXED), 401);
}

#[test]
fn a_record_in_the_legacy_stream_invalidates_captures_of_blocking_streams() {
    let driver = Driver::ready();
    let (stream, event) = (driver.stream(0), driver.event());
    let context: usize = made(|context| driver.cuCtxGetCurrent(context));
    let record = || {
        assert_eq!(driver.cuCtxSetCurrent(context), 0);
        driver.cuEventRecord(event, 0)
    };
    for mode in [GLOBAL, THREAD_LOCAL, RELAXED] {
        // The thread that records and the mode of the capture make no difference.
        for record in [&record, &|| on_another_thread(record)] as [&dyn Fn() -> u32; 2] {
            assert_eq!(status(&driver, 0), 0);
            assert_eq!(driver.cuStreamBeginCapture_v2(stream, mode), 0);
            assert_eq!(record(), 906, "mode {mode}");
            assert_eq!(status(&driver, stream), 2, "it is invalidated");
            assert_eq!(driver.cuStreamEndCapture(stream, &mut 0), 901);
            assert_eq!(record(), 0, "the capture is over");
        }
    }
    // The per-thread default stream does not synchronize with the legacy stream.
    assert_eq!(driver.cuStreamBeginCapture_v2(stream, GLOBAL), 0);
    assert_eq!(driver.cuEventRecord(event, PER_THREAD), 0);
    assert_eq!(driver.cuStreamEndCapture(stream, &mut 0), 0);
}

#[test]
fn a_capturing_stream_must_not_be_queried_or_waited_for() {
    let driver = Driver::ready();
    let calls: [&dyn Fn(usize) -> u32; 3] = [
        &|stream| driver.cuStreamQuery(stream),
        &|stream| driver.cuStreamSynchronize(stream),
        &|_| driver.cuCtxSynchronize(),
    ];
    for call in calls {
        let stream = capturing(&driver, RELAXED);
        assert_eq!(call(stream), 900);
        assert_eq!(driver.cuStreamEndCapture(stream, &mut 0), 901);
    }
}

#[test]
fn streams_fork_by_the_events_of_a_capture_and_must_be_joined() {
    let driver = Driver::ready();
    let (kernel, other) = (driver.kernel("work_10us"), driver.stream(NON_BLOCKING));
    let (fork, join) = (driver.event(), driver.event());
    for (comes_back, code) in [(true, 0), (false, 904)] {
        let stream = capturing(&driver, GLOBAL);
        assert_eq!(driver.cuEventRecord(fork, stream), 0);
        assert_eq!(driver.cuStreamWaitEvent(other, fork, 0), 0);
        assert_eq!(status(&driver, other), 1);
        assert_eq!(
            (driver.launch(kernel, stream), driver.launch(kernel, other)),
            (0, 0)
        );
        if comes_back {
            assert_eq!(driver.cuEventRecord(join, other), 0);
            assert_eq!(driver.cuStreamWaitEvent(stream, join, 0), 0);
        }
        assert_eq!(driver.cuStreamEndCapture(stream, &mut 0), code);
        assert_eq!(status(&driver, other), 0);
    }
}

#[test]
fn branches_of_a_graph_run_at_the_same_time() {
    let driver = Driver::ready();
    let (kernel, other) = (driver.kernel("work_10us"), driver.stream(NON_BLOCKING));
    let (fork, join, stream) = (driver.event(), driver.event(), capturing(&driver, GLOBAL));
    assert_eq!(driver.cuEventRecord(fork, stream), 0);
    assert_eq!(driver.cuStreamWaitEvent(other, fork, 0), 0);
    assert_eq!(
        (driver.launch(kernel, stream), driver.launch(kernel, other)),
        (0, 0)
    );
    assert_eq!(driver.cuEventRecord(join, other), 0);
    assert_eq!(driver.cuStreamWaitEvent(stream, join, 0), 0);
    assert_eq!(driver.launch(kernel, stream), 0);
    let graph: usize = made(|graph| driver.cuStreamEndCapture(stream, graph));
    let exec: usize = made(|exec| driver.cuGraphInstantiateWithFlags(exec, graph, 0));
    let before = driver.now();
    assert_eq!(driver.cuGraphLaunch(exec, stream), 0);
    assert_eq!(driver.cuStreamSynchronize(stream), 0);
    assert_eq!(driver.now() - before, 20_000);
}

#[test]
fn launches_of_a_graph_never_overlap() {
    let driver = Driver::ready();
    let (kernel, stream) = (driver.kernel("work_10us"), capturing(&driver, GLOBAL));
    assert_eq!(driver.launch(kernel, stream), 0);
    let graph: usize = made(|graph| driver.cuStreamEndCapture(stream, graph));
    let exec: usize = made(|exec| driver.cuGraphInstantiateWithFlags(exec, graph, 0));
    let (before, other) = (driver.now(), driver.stream(NON_BLOCKING));
    assert_eq!(
        (
            driver.cuGraphLaunch(exec, stream),
            driver.cuGraphLaunch(exec, other)
        ),
        (0, 0)
    );
    assert_eq!(driver.cuStreamSynchronize(other), 0);
    assert_eq!(driver.now() - before, 20_000);
}

#[test]
fn a_capture_is_isolated_and_bound_to_its_thread() {
    let driver = Driver::ready();
    let (outside, first) = (driver.recorded(0), capturing(&driver, THREAD_LOCAL));
    assert_eq!(
        on_another_thread(|| driver.cuStreamEndCapture(first, &mut 0)),
        908
    );
    assert_eq!(driver.cuStreamWaitEvent(first, outside, 0), 905);
    assert_eq!(driver.cuStreamEndCapture(first, &mut 0), 901);
    let (first, second) = (capturing(&driver, RELAXED), capturing(&driver, RELAXED));
    let event = driver.event();
    assert_eq!(driver.cuEventRecord(event, first), 0);
    assert_eq!(driver.cuStreamWaitEvent(second, event, 0), 902);
    assert_eq!((status(&driver, first), status(&driver, second)), (2, 2));
    assert_eq!(driver.cuStreamEndCapture(driver.stream(0), &mut 0), 401);
}
