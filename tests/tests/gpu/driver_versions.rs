//! Drivers from CUDA 11.0 to 13, and those that lack what is optional, measure exactly, whether or not they want a
//! context on the thread.

use crate::support::captures::begin;
use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::{init, scope, summary};
use profiler_tests::gpu::{Gpu, OnDriver, Ran, cuda, driver, exact, row, settle, told};

/// Drivers of all versions, and such that lack a function. The case says what is not recorded.
fn each_version() -> OnDriver {
    let of = driver()
        .legacy_stream()
        .env("PROFILER_BACKEND", "cuda")
        .keeps_events();
    let versions = [11_000, 11_040, 12_000, 12_030, 12_040, 12_080, 13_000];
    let versions = of.clone().each(versions, |driver, version| {
        let version = *version;
        let driver = driver.installed(move |of| of.driver_version(version));
        driver.each(["required", "optional"], |driver, context| {
            driver.script(&format!("current-context {context}"))
        })
    });
    let lacking = [
        "cuEventElapsedTime",
        "cuEventElapsedTime_v2",
        "cuEventRecordWithFlags",
        "cuCtxGetId",
    ];
    versions.and(of.each(lacking, |driver, lacking| {
        let lacking = *lacking;
        driver.installed(move |of| of.without(lacking))
    }))
}

/// Returns whether events are recorded in graphs in this case: by drivers from 11.1 on.
fn records_in_graphs(case: &str) -> bool {
    case != "cuEventRecordWithFlags" && !case.starts_with("11000")
}

/// Those in a graph stay for as long as it may be launched. Without context ids the profiler cannot know whether the
/// device was reset, so it does not touch events that may be gone.
fn all_but_graphs_events_are_destroyed(ran: &Ran) {
    let in_graph = if records_in_graphs(&ran.told) { 2 } else { 0 };
    if ran.report.calls_of("cuCtxGetId") > 0 {
        assert_eq!(
            ran.report.alive.events, in_graph,
            "{}: all other events were destroyed",
            ran.told
        );
    } else {
        assert_eq!(ran.report.calls_of("cuEventDestroy_v2"), 0, "{}", ran.told);
    }
}

#[test(on = each_version().then(all_but_graphs_events_are_destroyed))]
fn drivers_of_all_versions_measure_exactly() {
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
    gpu.finish();
    assert_eq!((cuda("outer").calls, cuda("inner").calls), (20, 20));
    exact(cuda("outer").total_ns, 200_000.0);
    exact(cuda("outer").self_ns, 60_000.0);
    exact(cuda("inner").total_ns, 140_000.0);
    exact(cuda("default").total_ns, 5_000.0);
    assert_eq!(summary().cuda.lost, []);
    captured(!records_in_graphs(&told()));
}

/// A scope in a capture that asks for a time of each replay has one, or is counted as refused.
fn captured(refused: bool) {
    use cudarc::driver::result::stream::end_capture;
    use cudarc::driver::sys::CUgraphInstantiate_flags;

    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    begin(&stream);
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
