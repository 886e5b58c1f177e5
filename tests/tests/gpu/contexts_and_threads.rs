//! A scope belongs to one stream of one context: where it ends on another thread or in another context than it
//! began, or began where there was none, it is measured right or refused with a reason.

use std::ffi::c_void;
use std::pin::pin;
use std::ptr::null_mut;

use cudarc::driver::result;
use profiler_runtime::cuda::{CudaLoss, Stream};
use profiler_runtime::{MeasureFuture, init, scope, summary};
use profiler_tests::gpu::{Gpu, OnDriver, cuda, driver, exact, lost, on_a_thread, row, settle};
use profiler_tests::poll::{poll_once, run, yields};

const PER_THREAD: *mut c_void = 2 as *mut c_void;

/// Opens a scope that names no stream, and says nothing of one.
fn measure(name: &str) {
    let _scope = scope!(name);
}

/// A stream by its handle, in the context that is current when it is used.
fn raw(stream: *mut c_void, context: *mut c_void) -> Stream {
    // SAFETY: the tests keep their streams and contexts for as long as they measure.
    unsafe { Stream::from_raw(stream, context) }
}

#[test(on = driver())]
fn what_ends_on_another_thread_than_its_default_stream_is_a_loss() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let own = gpu.context.per_thread_stream();
    let launch = async {
        gpu.spin(&own, 5_000);
        yields(1).await;
        gpu.spin(&own, 6_000);
    };
    let mut stays = pin!(yields(1).measure_execution_time("stays").stream(&own));
    let mut moves = Box::pin(launch.measure_execution_time("moves").stream(&own));
    assert!(poll_once(moves.as_mut()).is_pending() && poll_once(stays.as_mut()).is_pending());
    on_a_thread(|| run(moves));
    assert!(poll_once(stays.as_mut()).is_ready());
    gpu.finish();
    assert_eq!((cuda("moves").calls, row("moves").without_cuda), (0, 1));
    assert_eq!((cuda("stays").calls, row("stays").without_cuda), (1, 0));
    assert_eq!(summary().cuda.lost, [(CudaLoss::OtherThread, 1)]);
}

#[test(on = driver().legacy_stream())]
fn without_a_context_there_is_no_gpu_time_and_nothing_lost() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    measure("with a context");
    on_a_thread(|| {
        measure("without a context");
        let _scope = scope!("without a context", log = |_, _, _| {});
        let _raw = scope!("without a context", stream = raw(PER_THREAD, null_mut()));
    });
    gpu.finish();
    assert_eq!(cuda("with a context").calls, 1);
    let row = row("without a context");
    assert_eq!(
        (row.calls, row.without_cuda, row.cuda.is_none()),
        (3, 0, true)
    );
    assert_eq!(summary().cuda.lost, []);
}

/// Has the driver require a current context, or not.
fn current_context(driver: OnDriver, is: &&str) -> OnDriver {
    driver.script(&format!("current-context {is}"))
}

#[test(on = driver().script("devices 2").each(["optional", "required"], current_context))]
fn a_stream_that_is_named_needs_no_current_context() {
    let _profiler = init().expect("set up");
    let gpus = [Gpu::new(0), Gpu::new(1)];
    let (stream, context) = (gpus[0].stream(), &gpus[0].context);
    let current = || result::ctx::get_current().expect("nothing failed");
    for other in [None, Some(&gpus[1])] {
        on_a_thread(|| {
            if let Some(other) = other {
                other.context.bind_to_thread().expect("nothing failed");
            }
            let before = current();
            // More of them at once than there are events at first.
            let stream: Vec<_> = (0..50)
                .map(|_| scope!("stream", stream = &stream))
                .collect();
            let default = scope!("default", stream = context);
            let per_thread = scope!("per-thread", stream = context.per_thread_stream());
            assert_eq!(current(), before, "the beginnings leave it");
            drop((stream, default, per_thread));
            assert_eq!(current(), before, "the ends leave it");
        });
    }
    context.synchronize().expect("nothing failed");
    settle();
    assert_eq!(
        [
            cuda("stream").calls,
            cuda("default").calls,
            cuda("per-thread").calls
        ],
        [100, 2, 2]
    );
    assert_eq!(summary().cuda.lost, []);
}

#[test(on = driver().script("current-context required"))]
fn each_threads_first_scope_is_measured_where_the_driver_needs_a_context() {
    const THREADS: u64 = 50;

    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, others) = (gpu.stream(), gpu.stream());
    for _ in 0..THREADS {
        // One thread that has a context, and one that has none and begins with its first scope.
        for _ in 0..8 {
            let _scope = scope!("unrelated", stream = &others);
            gpu.spin(&others, 2_000);
        }
        on_a_thread(|| drop(scope!("first", stream = &stream)));
        // Its context is to be found by the stream.
        on_a_thread(|| {
            let stream = raw(stream.cu_stream().cast(), null_mut());
            let _scope = scope!("without a named context", stream = &stream);
        });
    }
    gpu.finish();
    assert_eq!(summary().cuda.lost, []);
    assert_eq!(cuda("unrelated").calls, 8 * THREADS);
    exact(cuda("unrelated").total_ns, 16_000.0 * THREADS as f64);
    assert_eq!(cuda("first").calls, THREADS);
    assert_eq!(cuda("without a named context").calls, THREADS);
}

#[test(on = driver().legacy_stream())]
fn a_context_that_comes_while_a_scope_is_open_is_a_loss() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    on_a_thread(|| {
        let _logged = scope!("logged", log = |_, _, _| {});
        let _plain = scope!("plain");
        gpu.context.bind_to_thread().expect("nothing failed");
    });
    settle();
    for name in ["logged", "plain"] {
        assert_eq!((cuda(name).calls, row(name).without_cuda), (0, 1), "{name}");
    }
    assert_eq!(summary().cuda.lost, [(CudaLoss::NoContext, 2)]);
}

#[test(on = driver().script("devices 2").legacy_stream())]
fn another_context_at_the_end_is_a_loss_where_the_stream_was_not_named() {
    let _profiler = init().expect("set up");
    let gpus = [Gpu::new(0), Gpu::new(1)];
    let stream = gpus[0].stream();
    let bind = |device: usize| {
        let bound = gpus[device].context.bind_to_thread();
        bound.expect("nothing failed");
    };
    bind(0);
    {
        let _implicit = scope!("implicit");
        let _stream = scope!("stream", stream = &stream);
        let _context = scope!("context", stream = &gpus[0].context);
        gpus[0].spin(&stream, 9_000);
        gpus[0].spin(&gpus[0].context.default_stream(), 8_000);
        bind(1);
    }
    {
        // It is current again at the end.
        let _there_and_back = scope!("there and back");
        gpus[1].spin(&gpus[1].context.default_stream(), 7_000);
        gpus[0].spin(&stream, 1_000);
        bind(1);
    }
    for gpu in &gpus {
        gpu.context.synchronize().expect("nothing failed");
    }
    settle();
    assert_eq!(
        (cuda("implicit").calls, row("implicit").without_cuda),
        (0, 1)
    );
    assert_eq!(lost(CudaLoss::OtherContext), 1);
    exact(cuda("stream").total_ns, 9_000.0);
    exact(cuda("context").total_ns, 8_000.0);
    exact(cuda("there and back").total_ns, 7_000.0);
    assert_eq!(summary().cuda.lost.len(), 1, "{:?}", summary().cuda.lost);
}
