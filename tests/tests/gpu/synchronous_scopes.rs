//! `sync = true`: the end of a scope waits for its work on the device, and for no other, and calls its logger
//! on the measured thread before it returns.

use std::sync::Arc;

use crate::support::captures::begin;
use cudarc::driver::sys::CUgraphInstantiate_flags;
use cudarc::driver::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::report::DropReason;
use profiler_runtime::{init, scope, summary};
use profiler_tests::gpu::{Gpu, cuda, driver, exact, on_a_thread, row, settle, simulator};
use profiler_tests::kept::Kept;

#[test(on = driver().script("synchronise allow"))]
fn a_synchronous_scope_calls_its_logger_before_it_ends() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, kept) = (gpu.stream(), Arc::<Kept>::default());
    for step in 0..10 {
        {
            let _scope = scope!("now", stream = &stream, log = kept.clone(), sync);
            gpu.spin(&stream, (step + 1) * 10_000);
        }
        let got = kept.of("now");
        let last = got.last().expect("it has been called by now");
        assert_eq!((got.len() as u64, last.step), (step + 1, step));
        assert_eq!(last.thread, std::thread::current().id());
        exact(last.value * 1e6, 1e4 * (step + 1) as f64);
    }
    {
        let _both = scope!("later", stream = &stream, log = kept.clone(), sync = false);
        gpu.spin(&stream, 5_000);
    }
    // It waits for its own end only, and needs no logger for that.
    let other = gpu.stream();
    gpu.spin(&other, 1_000_000_000);
    {
        let _scope = scope!("unlogged", stream = &stream, sync = true);
        gpu.spin(&stream, 7_000);
    }
    assert!(
        simulator().now() < 1_000_000_000,
        "the other stream is still at work"
    );
    gpu.finish();
    exact(cuda("now").total_ns, 550_000.0);
    exact(cuda("unlogged").total_ns, 7_000.0);
    assert_eq!((kept.of("now").len(), kept.of("later").len()), (10, 1));
    assert_ne!(kept.of("later")[0].thread, std::thread::current().id());
    assert_eq!(summary().dropped, []);
}

#[test(on = driver().script("synchronise allow"))]
fn a_synchronous_scope_that_cannot_wait_says_so() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, kept) = (gpu.stream(), Arc::<Kept>::default());
    let call = || {
        {
            let _scope = scope!("now", stream = &stream, log = kept.clone(), sync);
            gpu.spin(&stream, 10_000);
        }
        settle();
    };
    call();
    begin(&stream);
    call();
    drop(
        stream
            .end_capture(CUgraphInstantiate_flags(0))
            .expect("the capture is valid"),
    );
    simulator()
        .run("fault cuEventSynchronize nth 1 return 1")
        .expect("it is a command");
    call();
    call();
    assert_eq!(kept.steps("now"), [0, 3]);
    assert_eq!((row("now").calls, row("now").without_cuda), (4, 2));
    assert_eq!(
        summary().cuda.lost,
        [(CudaLoss::Captured, 1), (CudaLoss::DriverRefused, 1)]
    );
    assert_eq!(summary().dropped, [(DropReason::NoCudaTime, 2)]);
}

#[test(on = driver().script("synchronise allow"))]
fn a_synchronous_scope_beside_the_strictest_capture() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (captures, stream, kept) = (gpu.stream(), gpu.stream(), Arc::<Kept>::default());
    captures
        .begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL)
        .expect("it may capture");
    on_a_thread(|| {
        let _scope = scope!("beside", stream = &stream, log = kept.clone(), sync);
        gpu.spin(&stream, 10_000);
    });
    gpu.spin(&captures, 10_000);
    drop(
        captures
            .end_capture(CUgraphInstantiate_flags(0))
            .expect("the capture is valid"),
    );
    settle();
    assert_eq!(kept.steps("beside"), [0]);
    exact(kept.of("beside")[0].value * 1e6, 10_000.0);
    assert_eq!(summary().cuda.lost, []);
}
