//! The GPU time of a future goes from its first poll to its end on its stream, whatever is polled in between
//! and wherever; what futures overlap is no part of their parent's own time twice.

use std::future::Future;
use std::pin::pin;

use cudarc::driver::CudaStream;
use profiler_runtime::cuda::{StreamFuture, with_stream};
use profiler_runtime::{MeasureFuture, init, measure_execution_time, scope};
use profiler_tests::gpu::{
    Gpu, cuda, driver, exact, finish, name_of, on_a_thread, row, simulator, started,
};
use profiler_tests::poll::{poll_once, run, yields};

/// Launches so much, again and again with a wait in between.
async fn launch(gpu: &Gpu, stream: &CudaStream, lengths: &[u64]) {
    let mut lengths = lengths.iter();
    if let Some(first) = lengths.next() {
        gpu.spin(stream, *first);
    }
    for length in lengths {
        yields(1).await;
        gpu.spin(stream, *length);
    }
}

/// Polls two futures by turns to their ends.
async fn join(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut one_is_done, mut other_is_done) = (false, false);
    loop {
        one_is_done = one_is_done || poll_once(one.as_mut()).is_ready();
        other_is_done = other_is_done || poll_once(other.as_mut()).is_ready();
        if one_is_done && other_is_done {
            return;
        }
        yields(1).await;
    }
}

#[test(on = driver())]
fn an_async_function_on_the_stream_it_names() {
    #[measure_execution_time(name = "forward", stream = &stream)]
    async fn forward(gpu: &Gpu, stream: std::sync::Arc<CudaStream>) {
        launch(gpu, &stream, &[10_000, 20_000]).await;
        layer(gpu).with_stream(&stream).await;
    }
    #[measure_execution_time(name = "layer")]
    async fn layer(gpu: &Gpu) {
        let stream = profiler_runtime::cuda::current_stream();
        assert!(stream.is_some(), "wherever it is polled");
        yields(2).await;
        gpu.spin(&gpu.context.default_stream(), 1_000);
    }
    let (_profiler, gpu, stream) = started();
    for _ in 0..3 {
        run(forward(&gpu, stream.clone()));
    }
    gpu.finish();
    let (forward, layer) = (cuda("forward"), cuda("layer"));
    assert_eq!((forward.calls, row("forward").futures), (3, 3));
    exact(forward.total_ns, 90_000.0);
    exact(forward.self_ns, 90_000.0);
    assert_eq!((layer.calls, &layer.streams), (3, &vec![name_of(&stream)]));
    exact(layer.total_ns, 0.0);
}

#[test(on = driver())]
fn any_future_on_the_stream_it_is_given() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (given, current) = (gpu.stream(), gpu.stream());
    run(launch(&gpu, &given, &[5_000, 6_000])
        .measure_execution_time("given")
        .stream(&given));
    // The current stream where a future is created also applies wherever it is polled, and to scopes inside it.
    let made = with_stream(&current, || {
        let inside = async {
            launch(&gpu, &current, &[7_000]).await;
            yields(1).await;
            let _scope = scope!("inside");
            gpu.spin(&current, 8_000);
        };
        inside.measure_execution_time("inherits")
    });
    on_a_thread(|| run(made));
    gpu.finish();
    let (given_times, inherits, inside) = (cuda("given"), cuda("inherits"), cuda("inside"));
    exact(given_times.total_ns, 11_000.0);
    assert_eq!(given_times.streams, [name_of(&given)]);
    exact(inherits.total_ns, 15_000.0);
    exact(inherits.self_ns, 7_000.0);
    exact(inside.total_ns, 8_000.0);
    assert_eq!(
        [inherits.streams, inside.streams],
        [[name_of(&current)], [name_of(&current)]]
    );
}

#[test(on = driver())]
fn joined_futures_count_once_in_what_they_are_part_of() {
    let (_profiler, gpu, stream) = started();
    let both = async {
        gpu.spin(&stream, 8_000);
        // On the stream: 10 of the one, 20 of the other, 5 of the one, 7 of the other.
        let one = launch(&gpu, &stream, &[10_000, 5_000]).measure_execution_time("one");
        let other = launch(&gpu, &stream, &[20_000, 7_000]).measure_execution_time("other");
        join(one.stream(&stream), other.stream(&stream)).await;
        gpu.spin(&stream, 9_000);
    };
    run(both.measure_execution_time("both").stream(&stream));
    finish(&stream);
    let (both, one, other) = (cuda("both"), cuda("one"), cuda("other"));
    exact(one.total_ns, 35_000.0);
    exact(one.self_ns, 35_000.0);
    exact(other.total_ns, 32_000.0);
    exact(both.total_ns, 59_000.0);
    exact(both.self_ns, 17_000.0);
}

#[test(on = driver())]
fn a_future_that_waits_beside_a_scope_counts_once_in_what_is_around_both() {
    let (_profiler, gpu, stream) = started();
    {
        let _around = scope!("around", stream = &stream);
        gpu.spin(&stream, 8_000);
        let future = launch(&gpu, &stream, &[10_000, 5_000]).measure_execution_time("future");
        let mut future = pin!(future.stream(&stream));
        assert!(poll_once(future.as_mut()).is_pending());
        {
            let _beside = scope!("beside", stream = &stream);
            gpu.spin(&stream, 20_000);
        }
        assert!(poll_once(future.as_mut()).is_ready());
    }
    finish(&stream);
    exact(cuda("future").total_ns, 35_000.0);
    exact(cuda("beside").total_ns, 20_000.0);
    exact(cuda("around").total_ns, 43_000.0);
    exact(cuda("around").self_ns, 8_000.0);
}

#[test(on = driver())]
fn a_future_that_moves_between_threads_stays_on_its_stream() {
    let (_profiler, gpu, stream) = started();
    for _ in 0..10 {
        let lengths = [1_000, 2_000, 3_000, 4_000];
        let moves = async {
            for length in lengths {
                {
                    let _piece = scope!("piece", stream = &stream);
                    gpu.spin(&stream, length);
                }
                yields(1).await;
            }
        };
        let mut future = Box::pin(moves.measure_execution_time("moves").stream(&stream));
        let mut is_done = false;
        while !is_done {
            is_done = on_a_thread(|| poll_once(future.as_mut()).is_ready());
        }
    }
    finish(&stream);
    let (moves, piece) = (cuda("moves"), cuda("piece"));
    assert_eq!((moves.calls, piece.calls), (10, 40));
    exact(moves.total_ns, 100_000.0);
    exact(moves.self_ns, 0.0);
    exact(piece.total_ns, 100_000.0);
}

#[test(on = driver())]
fn what_ended_on_another_thread_is_no_own_time() {
    const ROUNDS: u64 = 2_000;
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, simulator) = (gpu.stream(), simulator());
    let (to_end, begun) = std::sync::mpsc::sync_channel(0);
    let (ended, has_ended) = std::sync::mpsc::sync_channel(0);
    std::thread::scope(|threads| {
        let other = threads.spawn(move || {
            for future in begun {
                run(future);
                ended.send(()).expect("it waits");
            }
        });
        for _ in 0..ROUNDS {
            let (gpu, stream) = (&gpu, &stream);
            let around = async move {
                launch(gpu, stream, &[1_000])
                    .measure_execution_time("part")
                    .stream(stream)
                    .await;
                simulator.advance(1_000).expect("the clock is virtual");
                yields(1).await;
            };
            let mut around = Box::pin(around.measure_execution_time("around").stream(stream));
            assert!(poll_once(around.as_mut()).is_pending());
            to_end.send(around).expect("it waits");
            has_ended.recv().expect("it ends");
        }
        drop(to_end);
        other.join().expect("nothing failed");
    });
    finish(&stream);
    assert_eq!(cuda("part").calls, ROUNDS);
    assert_eq!(cuda("around").calls, ROUNDS);
    assert!(cuda("around").self_ns < 500.0, "{:?}", cuda("around"));
}

#[test(on = driver())]
fn one_that_is_dropped_midway_ends_there() {
    let (_profiler, gpu, stream) = started();
    {
        let dropped = launch(&gpu, &stream, &[30_000, 40_000]).measure_execution_time("dropped");
        let mut dropped = pin!(dropped.stream(&stream));
        assert!(poll_once(dropped.as_mut()).is_pending());
    }
    drop(
        launch(&gpu, &stream, &[1_000])
            .measure_execution_time("never polled")
            .stream(&stream),
    );
    finish(&stream);
    assert_eq!(
        (cuda("dropped").calls, row("dropped").dropped_futures),
        (1, 1)
    );
    exact(cuda("dropped").total_ns, 30_000.0);
    assert_eq!(
        (cuda("never polled").calls, row("never polled").without_cuda),
        (0, 0)
    );
}
