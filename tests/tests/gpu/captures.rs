//! The profiler does not change a graph that the program captures: a scope inside a capture has no GPU time and is
//! counted. Nothing that the profiler does elsewhere invalidates a capture.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::support::captures::{MODES, begin, end, nodes, spoiled};
use cudarc::driver::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureStatus};
use cudarc::driver::{CudaStream, result, sys};
use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::{init, scope, summary};
use profiler_tests::CpuTimes;
use profiler_tests::gpu::{
    Gpu, Held, cuda, driver, exact, finish, on_threads, row, settle, simulator, started,
};

#[test(on = driver())]
fn a_scope_in_a_capture_has_no_gpu_time_and_leaves_no_node() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, other, beside) = (gpu.stream(), gpu.stream(), gpu.stream());
    for mode in MODES {
        stream.begin_capture(mode).expect("it may capture");
        {
            let _inside = scope!("inside", stream = &stream);
            gpu.spin(&stream, 10_000);
            other.join(&stream).expect("it may take part");
            {
                // A stream that takes part because it waits for the other one.
                let _forked = scope!("forked", stream = &other);
                gpu.spin(&other, 20_000);
            }
            // One that does not, on the thread that captures: its events are made now.
            let _beside = scope!("beside", stream = &beside);
            gpu.spin(&beside, 30_000);
            stream.join(&other).expect("it took part");
        }
        let graph = end(&stream);
        assert_eq!(nodes(&graph), 2);
        let _launch = scope!("launch", stream = &stream);
        graph.launch().expect("nothing failed");
    }
    gpu.finish();
    for name in ["inside", "forked"] {
        let row = row(name);
        assert_eq!(
            (row.calls, row.without_cuda, row.cuda.is_none()),
            (3, 3, true),
            "{name}"
        );
        assert!(row.cpu().total_ns > 0.0, "its CPU time is there");
    }
    assert_eq!(summary().cuda.lost, [(CudaLoss::Captured, 6)]);
    exact(cuda("beside").total_ns, 90_000.0);
    // One after the other, as they were captured.
    exact(cuda("launch").total_ns, 90_000.0);
    assert_eq!(spoiled(), 0);
}

#[test(on = driver())]
fn a_capture_that_begins_or_ends_inside_of_a_scope() {
    let (_profiler, gpu, stream) = started();
    for mode in MODES {
        {
            let _around = scope!("around", stream = &stream);
            gpu.spin(&stream, 1_000);
            {
                let _begins = scope!("begins inside", stream = &stream);
                stream.begin_capture(mode).expect("it may capture");
                gpu.spin(&stream, 10_000);
            }
            let _ends = scope!("ends inside", stream = &stream);
            gpu.spin(&stream, 20_000);
            let graph = end(&stream);
            assert_eq!(nodes(&graph), 2);
            graph.launch().expect("nothing failed");
        }
        gpu.context.synchronize().expect("nothing failed");
    }
    settle();
    for name in ["begins inside", "ends inside"] {
        assert_eq!((cuda(name).calls, row(name).without_cuda), (0, 3), "{name}");
    }
    assert_eq!(summary().cuda.lost, [(CudaLoss::Captured, 6)]);
    exact(cuda("around").total_ns, 93_000.0);
    exact(cuda("around").self_ns, 93_000.0);
    assert_eq!(spoiled(), 0);
}

#[test(on = driver())]
fn a_capture_that_begins_as_a_scope_is_being_recorded() {
    let (_profiler, gpu, stream) = started();
    // The scope records two events.
    for (mode, number) in MODES.iter().flat_map(|mode| [(*mode, 1), (*mode, 2)]) {
        let record = Held::call("cuEventRecord", number);
        std::thread::scope(|threads| {
            let raced = threads.spawn(|| drop(scope!("raced", stream = &stream)));
            record.wait();
            stream.begin_capture(mode).expect("it may capture");
            drop(record);
            raced.join().expect("the scope ends");
        });
        // The resolver reads what it can before the capture ends.
        settle();
        drop(end(&stream));
        for _ in 0..10 {
            let _scope = scope!("after", stream = &stream);
            gpu.spin(&stream, 10_000);
        }
        finish(&stream);
    }
    assert_eq!((cuda("raced").calls, row("raced").without_cuda), (0, 6));
    assert_eq!(summary().cuda.lost, [(CudaLoss::Captured, 6)]);
    exact(cuda("after").total_ns, 600_000.0);
    assert_eq!(spoiled(), 0);
}

#[test(on = driver())]
fn a_capture_that_the_program_has_spoiled() {
    let (_profiler, gpu, stream) = started();
    begin(&stream);
    assert!(
        stream.synchronize().is_err(),
        "what captures is not waited for"
    );
    assert_eq!(
        stream.capture_status(),
        Ok(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED)
    );
    {
        let _in_it = scope!("in it", stream = &stream);
        let _explicit = scope!("explicit", stream = &stream, cuda_graph);
    }
    let refused = stream.end_capture(CUgraphInstantiate_flags(0)).map(drop);
    let reason = sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    assert_eq!(
        refused.map_err(|error| error.0),
        Err(reason),
        "as without the profiler"
    );
    {
        let _after = scope!("after", stream = &stream);
        gpu.spin(&stream, 5_000);
    }
    finish(&stream);
    assert_eq!(
        (row("in it").without_cuda, row("explicit").without_cuda),
        (1, 1)
    );
    assert_eq!(summary().cuda.lost, [(CudaLoss::Captured, 2)]);
    exact(cuda("after").total_ns, 5_000.0);
    assert_eq!(spoiled(), 1);
}

#[test(on = driver().legacy_stream())]
fn a_default_stream_beside_a_blocking_one_that_captures() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    gpu.context.bind_to_thread().expect("nothing failed");
    let blocking = result::stream::create(result::stream::StreamKind::Default).expect("a stream");
    // SAFETY: the stream is of this context, and is not destroyed before the program ends.
    let blocking = unsafe { gpu.context.wrap_borrowed_stream(blocking) };
    let blocking = Arc::new(blocking);
    let default = gpu.context.default_stream();
    {
        let _around = scope!("around");
        begin(&blocking);
        {
            // To touch the default stream now would make it part of the capture, which it cannot be.
            let _implicit = scope!("implicit");
            let _named = scope!("named", stream = &gpu.context);
            gpu.spin(&blocking, 10_000);
        }
        let graph = end(&blocking);
        assert_eq!(nodes(&graph), 1);
        graph.launch().expect("nothing failed");
        gpu.spin(&default, 5_000);
    }
    gpu.finish();
    assert_eq!(
        (row("implicit").without_cuda, row("named").without_cuda),
        (1, 1)
    );
    assert_eq!(summary().cuda.lost, [(CudaLoss::Captured, 2)]);
    // The default stream waits for the blocking one.
    exact(cuda("around").total_ns, 15_000.0);
    assert_eq!(spoiled(), 0);
}

#[test(on = driver())]
fn nothing_done_elsewhere_spoils_the_strictest_capture() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (captures, streams) = (gpu.stream(), [(); 2].map(|()| gpu.stream()));
    captures
        .begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL)
        .expect("it may capture");
    let is_over = AtomicBool::new(false);
    let measure_on = |stream: &Arc<CudaStream>| {
        while !is_over.load(Relaxed) {
            // A logger wants its place on the time line.
            drop(scope!("logged", stream = stream, log = |_, _, _| {}));
            // More than were there at first: the pool grows, and is asked again and again.
            for _ in 0..200 {
                let _scope = scope!("elsewhere", stream = stream);
                gpu.spin(stream, 1_000);
            }
            simulator()
                .advance(1_000_000)
                .expect("the clock is virtual");
            settle();
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(|| on_threads(&streams, measure_on));
        // Long enough for the anchor of the time line to be taken anew.
        for _ in 0..25 {
            gpu.spin(&captures, 10_000);
            std::thread::sleep(Duration::from_millis(50));
        }
        is_over.store(true, Relaxed);
    });
    let graph = end(&captures);
    assert_eq!(nodes(&graph), 25);
    let report = simulator().report().expect("a report");
    assert_eq!(report.captures_invalidated, 0);
    let anchors = report.event_records().filter(|record| {
        let is_of = |stream: &Arc<CudaStream>| record.stream == stream.cu_stream() as u64;
        !streams.iter().any(is_of)
    });
    assert!(
        anchors.count() >= 2,
        "the time line was looked after meanwhile"
    );
    assert!(report.created.events > 2 * 200, "the pool grew meanwhile");
    assert_eq!(cuda("elsewhere").calls, row("elsewhere").calls);
    assert_eq!(summary().cuda.lost, []);
}
