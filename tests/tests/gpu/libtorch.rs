//! Scopes that name no stream are measured on the stream on which libtorch launches, if `PROFILER_CUDA_STREAM` says so: that of
//! each thread, whichever it is when the scope begins. The legacy default stream is refused unless it is asked for too.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use profiler_runtime::{init, scope};
use profiler_simulated_driver::Installation;
use profiler_tests::gpu::{Gpu, OnDriver, Ran, driver, exact, on_threads, row, simulator, told};

/// A driver, and a libtorch that the program finds.
fn with_libtorch(stream: &str) -> OnDriver {
    let driver = driver().installed(Installation::libtorch);
    driver.env("PROFILER_CUDA_STREAM", stream)
}

type SetStream = unsafe extern "C" fn(*mut c_void, i32) -> c_int;

/// Loads libtorch, as `tch` does, and returns what chooses the stream of a thread.
fn libtorch() -> impl Fn(Option<&Arc<CudaStream>>) + Sync {
    // SAFETY: the stand-in has no initialisers, and is never closed.
    let set = unsafe {
        let library = libc::dlopen(c"libtorch_cuda.so".as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "it is installed");
        libc::dlsym(library, c"torch_set_current_cuda_stream".as_ptr())
    };
    assert!(!set.is_null(), "it has the function");
    // SAFETY: the function has this type.
    let set = unsafe { mem::transmute::<*mut c_void, SetStream>(set) };
    move |stream| {
        let handle = stream.map_or(ptr::null_mut(), |stream| stream.cu_stream().cast());
        // SAFETY: the stand-in keeps the handle, and the stream outlives the test's launches.
        assert_eq!(unsafe { set(handle, 0) }, 0);
    }
}

fn refused(ran: &Ran) -> usize {
    ran.stderr
        .matches("libtorch launches on the legacy default stream")
        .count()
}

#[test(on = with_libtorch("libtorch").then(|ran| assert_eq!(refused(ran), 0, "{}", ran.stderr)))]
fn each_scope_is_measured_on_the_stream_that_libtorch_has_then() {
    let _profiler = init().expect("set up");
    let set_stream = libtorch();
    let gpu = Gpu::new(0);
    on_threads([10_000, 20_000], |ns| {
        gpu.context.bind_to_thread().expect("nothing failed");
        for stream in [gpu.stream(), gpu.stream()] {
            set_stream(Some(&stream));
            let _scope = scope!("libtorch: forward");
            gpu.spin(&stream, ns);
            // Work elsewhere is not in its time.
            gpu.spin(&gpu.stream(), 500_000);
        }
    });
    gpu.finish();
    let row = row("libtorch: forward");
    assert_eq!((row.calls, row.without_stream), (4, 0));
    let cuda = row.cuda.expect("its GPU time");
    assert_eq!(cuda.calls, 4);
    exact(cuda.total_ns, 60_000.0);
}

#[test(on = driver().installed(Installation::libtorch).each(["libtorch", "libtorch-or-legacy"], |driver, stream| {
    driver.env("PROFILER_CUDA_STREAM", stream)
}).then(|ran| assert_eq!(refused(ran), usize::from(ran.told == "libtorch"), "{}", ran.stderr)))]
fn the_legacy_default_stream_is_refused_with_the_way_out_unless_it_is_asked_for() {
    let _profiler = init().expect("set up");
    let _set_stream = libtorch();
    let gpu = Gpu::new(0);
    for _ in 0..3 {
        let _scope = scope!("libtorch: legacy");
        gpu.spin(&gpu.context.default_stream(), 10_000);
    }
    gpu.finish();
    let row = row("libtorch: legacy");
    let events = simulator()
        .report()
        .expect("a report")
        .calls
        .get("cuEventRecord")
        .copied();
    if told() == "libtorch" {
        assert_eq!((row.without_stream, row.cuda.is_none()), (3, true));
        assert_eq!(events, None, "no event is in the way of other streams");
    } else {
        exact(row.cuda.expect("its GPU time").total_ns, 30_000.0);
    }
}

#[test(on = driver().env("PROFILER_CUDA_STREAM", "libtorch").then(|ran| {
    let said = "PROFILER_CUDA_STREAM: the process has loaded no libtorch that tells its stream";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}))]
fn a_process_without_libtorch_is_told_so_at_its_end() {
    let _profiler = init().expect("set up");
    let _gpu = Gpu::new(0);
    drop(scope!("libtorch: none"));
    assert!(row("libtorch: none").cuda.is_none());
}
