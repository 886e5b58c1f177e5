//! Spans of `tracing` have the GPU times of what is launched inside, on the stream that is current there or on the
//! program's default stream.

use std::pin::pin;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use profiler_runtime::cuda::{set_default_stream, with_stream};
use profiler_runtime::{ProfilerLayer, init, scope};
use profiler_tests::gpu::{Gpu, cuda, driver, exact, finish, name_of, row};
use profiler_tests::poll::{poll_once, yields};
use tracing::{info_span, instrument};
use tracing_subscriber::layer::SubscriberExt;

fn install() {
    let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new());
    tracing::subscriber::set_global_default(subscriber).expect("the first of this process");
}

#[instrument(skip_all)]
fn forward(gpu: &Gpu, stream: &CudaStream) {
    gpu.spin(stream, 10_000);
    for _ in 0..2 {
        info_span!("layer").in_scope(|| gpu.spin(stream, 40_000));
    }
}

#[instrument(skip_all)]
async fn steps(gpu: &Gpu, stream: Arc<CudaStream>) {
    for ns in [10_000, 20_000, 30_000] {
        gpu.spin(&stream, ns);
        yields(1).await;
    }
}

#[test(on = driver())]
fn spans_on_the_current_stream() {
    let _profiler = init().expect("set up");
    install();
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    for _ in 0..3 {
        let _step = scope!("step", stream = &stream);
        with_stream(&stream, || forward(&gpu, &stream));
        gpu.spin(&stream, 5_000);
    }
    finish(&stream);
    let (step, forward, layer) = (
        cuda("step"),
        cuda("gpu::spans::forward"),
        cuda("gpu::spans::layer"),
    );
    assert_eq!((step.calls, forward.calls, layer.calls), (3, 3, 6));
    exact(step.total_ns, 285_000.0);
    exact(step.self_ns, 15_000.0);
    exact(forward.total_ns, 270_000.0);
    exact(forward.self_ns, 30_000.0);
    exact(layer.total_ns, 240_000.0);
    exact(layer.self_ns, 240_000.0);
    assert_eq!(forward.streams, [name_of(&stream)]);
    assert_eq!(row("gpu::spans::forward").calls, 3);
}

#[test(on = driver())]
fn spans_on_the_default_stream_of_the_program() {
    let _profiler = init().expect("set up");
    install();
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    set_default_stream(&stream);
    forward(&gpu, &stream);
    finish(&stream);
    let (forward, layer) = (cuda("gpu::spans::forward"), cuda("gpu::spans::layer"));
    exact(forward.total_ns, 90_000.0);
    exact(layer.total_ns, 80_000.0);
    assert_eq!(forward.streams, [name_of(&stream)]);
}

#[test(on = driver())]
fn each_time_that_a_span_of_a_future_is_entered_has_a_gpu_time() {
    let _profiler = init().expect("set up");
    install();
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    {
        let mut future = pin!(steps(&gpu, stream.clone()));
        while with_stream(&stream, || poll_once(future.as_mut())).is_pending() {
            // Not the span's.
            gpu.spin(&stream, 1_000_000);
        }
    }
    finish(&stream);
    let times = cuda("gpu::spans::steps");
    exact(times.total_ns, 60_000.0);
    exact(times.max_ns, 30_000.0);
    // Each poll, and the drop of the future.
    assert_eq!(row("gpu::spans::steps").calls, 5);
}
