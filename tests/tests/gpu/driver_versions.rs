//! Drivers from CUDA 11.0 to 13, and those that lack what is optional, measure exactly, whether or not they want a
//! context on the thread.

use std::path::Path;

use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::{init, scope, summary};
use profiler_simulated_driver::Installation;
use profiler_tests::gpu;
use profiler_tests::gpu::{Gpu, TOLD, cuda, exact, is_child, on_driver, row, settle, told};
use profiler_tests::measuring;

#[test]
fn drivers_of_all_versions_measure_exactly() {
    if !measuring() {
        return;
    }
    if is_child() {
        let _profiler = init().expect("there is CUDA");
        let gpu = Gpu::new(0);
        let stream = gpu.stream();
        for _ in 0..20 {
            let _outer = scope!("outer", stream = &stream);
            gpu.spin(&stream, 3_000);
            let _inner = scope!("inner", stream = &stream);
            gpu.spin(&stream, 7_000);
        }
        {
            let _default = scope!("default");
            gpu.spin(&gpu.context.default_stream(), 5_000);
        }
        stream.synchronize().expect("nothing failed");
        gpu.context.synchronize().expect("nothing failed");
        settle();
        assert_eq!((cuda("outer").calls, cuda("inner").calls), (20, 20));
        exact(cuda("outer").total_ns, 200_000.0);
        exact(cuda("outer").self_ns, 60_000.0);
        exact(cuda("inner").total_ns, 140_000.0);
        exact(cuda("default").total_ns, 5_000.0);
        assert_eq!(summary().cuda.lost, []);
        captured(told() == "no external records");
        return;
    }
    let run = |installation: &dyn Fn(&Path) -> Installation, script: &str, said: &str| {
        let ran = on_driver(installation, script, |command| {
            gpu::legacy_stream(command);
            command.env(TOLD, said).env("PROFILER_BACKEND", "cuda");
        });
        assert_eq!(ran.report.misuses, []);
        // Those in a graph stay for as long as it may be launched. Without context ids the profiler
        // cannot know whether the device was reset, so it does not touch events that may be gone.
        let in_graph = if said.is_empty() { 2 } else { 0 };
        let alive = ran.report.alive.events;
        if ran.report.calls_of("cuCtxGetId") > 0 {
            assert_eq!(alive, in_graph, "all other events were destroyed");
        } else {
            assert_eq!(ran.report.calls_of("cuEventDestroy_v2"), 0);
        }
    };
    for version in [11_000, 11_040, 12_000, 12_030, 12_040, 12_080, 13_000] {
        for context in ["required", "optional"] {
            let said = if version < 11_010 {
                "no external records"
            } else {
                ""
            };
            run(
                &|folder| Installation::new(folder).driver_version(version),
                &format!("current-context {context}"),
                said,
            );
        }
    }
    for (lacking, said) in [
        ("cuEventElapsedTime", ""),
        ("cuEventElapsedTime_v2", ""),
        ("cuEventRecordWithFlags", "no external records"),
        ("cuCtxGetId", ""),
    ] {
        run(
            &|folder| Installation::new(folder).without(lacking),
            "",
            said,
        );
    }
}

/// A scope in a capture that asks for a time of each replay has one, or is counted as refused.
fn captured(refused: bool) {
    use cudarc::driver::result::stream::end_capture;
    use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    stream
        .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)
        .expect("it captures");
    {
        let _scope = scope!("captured", stream = &stream, cuda_graph);
        gpu.spin(&stream, 9_000);
    }
    if refused {
        // SAFETY: the stream captures.
        let graph = unsafe { end_capture(stream.cu_stream()) }.expect("the capture is valid");
        assert!(!graph.is_null());
        settle();
        assert_eq!(summary().cuda.lost, [(CudaLoss::DriverRefused, 1)]);
        assert_eq!(row("captured").without_cuda, 1);
        return;
    }
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = stream
        .end_capture(flags)
        .expect("the capture is valid")
        .expect("a graph");
    graph.launch().expect("it runs");
    stream.synchronize().expect("nothing failed");
    // The resolver looks whether a graph was replayed whenever it looks at anything.
    settle();
    assert_eq!(cuda("captured").calls, 1);
    exact(cuda("captured").total_ns, 9_000.0);
}
