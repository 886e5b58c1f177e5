//! A scope to which streams are bound after it has begun has the sum of its times on them. Scopes around are those of their own
//! streams, as ever. A stream that cannot be measured is told, and nothing waits.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use cudarc::driver::CudaStream;
use profiler_runtime::cuda::{CudaLoss, Stream, bind_stream};
use profiler_runtime::{
    Activity, Handle, Profile, Trace, measure_execution_time, scope, set_enabled, summary,
};
use profiler_tests::gpu::{
    Gpu, Held, Ran, cuda, cupti_of_driver, driver, exact, lost, name_of, on_a_thread, row, settle,
    simulator, started, tell,
};
use profiler_tests::kept::Kept;
use profiler_tests::poll::{poll_once, run, yields};
use profiler_tests::traces::read_back;
use profiler_tests::{stop, work};

use crate::support::captures::{begin, end, nodes, spoiled};

/// An operation as frameworks have it: it binds a stream, and launches there.
fn operation(gpu: &Gpu, stream: &Arc<CudaStream>, ns: u64) {
    bind_stream(stream);
    gpu.spin(stream, ns);
}

/// Waits for the device, so that what follows begins later.
fn wait(gpu: &Gpu) {
    gpu.context.synchronize().expect("nothing failed");
}

fn records(expected: u64) -> impl Fn(&Ran) {
    move |ran| assert_eq!(ran.report.calls_of("cuEventRecord"), expected)
}

/// Two events of a scope, and those of the anchor, which are a few more on a busy machine.
fn few_records(ran: &Ran) {
    assert!(
        ran.report.calls_of("cuEventRecord") < 50,
        "{:?}",
        ran.report.calls
    );
}

#[test(on = driver())]
fn a_scope_is_measured_from_the_moment_that_it_is_bound() {
    let (_profiler, gpu, stream) = started();
    {
        let _scope = scope!("bound");
        gpu.spin(&stream, 5_000);
        operation(&gpu, &stream, 10_000);
        gpu.spin(&stream, 20_000);
    }
    gpu.spin(&stream, 40_000);
    gpu.finish();
    let bound = cuda("bound");
    exact(bound.total_ns, 30_000.0);
    exact(bound.self_ns, 30_000.0);
    assert_eq!(
        (bound.calls, bound.streams.clone()),
        (1, vec![name_of(&stream)])
    );
    assert_eq!(
        (row("bound").without_stream, summary().cuda.lost),
        (0, vec![])
    );
}

#[test(on = driver())]
fn the_times_on_several_streams_are_added_up_to_those_of_calls() {
    let (_profiler, gpu, first) = started();
    let second = gpu.stream();
    for longer in [0, 10_000, 20_000] {
        let _scope = scope!("bound");
        operation(&gpu, &first, 30_000);
        operation(&gpu, &second, 50_000 + longer);
        wait(&gpu);
        operation(&gpu, &first, 5_000);
    }
    gpu.finish();
    let bound = cuda("bound");
    assert_eq!(bound.calls, 3);
    // The stream that is bound stays so until another one is, while the program waits.
    exact(bound.total_ns, 285_000.0);
    exact(bound.self_ns, 285_000.0);
    exact(bound.min_ns, 85_000.0);
    exact(bound.max_ns, 105_000.0);
    assert_eq!(bound.streams, [name_of(&first), name_of(&second)]);
}

#[test(on = driver().then(few_records))]
fn a_scope_whose_stream_is_named_keeps_it() {
    let (_profiler, gpu, named) = started();
    let other = gpu.stream();
    {
        let _scope = scope!("named", stream = &named);
        gpu.spin(&named, 10_000);
        for _ in 0..50 {
            bind_stream(&other);
            bind_stream(&named);
        }
        gpu.spin(&other, 20_000);
    }
    gpu.finish();
    exact(cuda("named").total_ns, 10_000.0);
    assert_eq!(cuda("named").streams, [name_of(&named)]);
    assert_eq!(summary().cuda.lost, []);
}

#[test(on = driver().then(few_records))]
fn binding_a_stream_again_does_nothing() {
    let (_profiler, gpu, stream) = started();
    {
        let _scope = scope!("bound");
        for _ in 0..50 {
            operation(&gpu, &stream, 1_000);
        }
    }
    gpu.finish();
    exact(cuda("bound").total_ns, 50_000.0);
}

#[test(on = driver())]
fn scopes_around_have_the_time_on_the_streams_that_they_are_on() {
    let (_profiler, gpu, first) = started();
    let (second, named) = (gpu.stream(), gpu.stream());
    {
        let _unbound = scope!("unbound");
        {
            let _bound = scope!("bound");
            operation(&gpu, &first, 5_000);
            wait(&gpu);
            {
                let _inner = scope!("inner");
                operation(&gpu, &first, 10_000);
                operation(&gpu, &second, 20_000);
                wait(&gpu);
            }
            operation(&gpu, &second, 2_000);
            wait(&gpu);
        }
        {
            let _named = scope!("named", stream = &named);
            gpu.spin(&named, 40_000);
            let _inner = scope!("inner of named");
            operation(&gpu, &first, 70_000);
            operation(&gpu, &named, 3_000);
        }
    }
    gpu.finish();
    for (name, total, own, elsewhere) in [
        ("inner", 30_000.0, 30_000.0, 0.0),
        // On the first stream until the second was bound, after 5 + 20 µs.
        ("bound", 27_000.0, 17_000.0, 20_000.0),
        ("inner of named", 73_000.0, 73_000.0, 0.0),
        ("named", 43_000.0, 40_000.0, 70_000.0),
    ] {
        let row = cuda(name);
        exact(row.total_ns, total);
        exact(row.self_ns, own);
        exact(row.other_streams_ns, elsewhere);
    }
    assert!(row("unbound").cuda.is_none());
    assert_eq!(summary().cuda.lost, []);
}

#[test(on = driver())]
fn scopes_that_name_a_bound_stream_are_inside_and_others_are_elsewhere() {
    let (_profiler, gpu, first) = started();
    let (second, other) = (gpu.stream(), gpu.stream());
    {
        let _bound = scope!("bound");
        operation(&gpu, &first, 10_000);
        wait(&gpu);
        operation(&gpu, &second, 20_000);
        {
            let _on_second = scope!("on second", stream = &second);
            gpu.spin(&second, 4_000);
        }
        {
            let _on_other = scope!("on other", stream = &other);
            gpu.spin(&other, 7_000);
        }
    }
    gpu.finish();
    let bound = cuda("bound");
    exact(bound.total_ns, 34_000.0);
    exact(bound.self_ns, 30_000.0);
    exact(bound.other_streams_ns, 7_000.0);
    exact(cuda("on second").self_ns, 4_000.0);
}

#[measure_execution_time(name = "task")]
async fn task(gpu: &Gpu, streams: &[Arc<CudaStream>]) {
    for stream in streams {
        operation(gpu, stream, 10_000);
        yields(1).await;
    }
}

#[test(on = driver())]
fn a_future_is_measured_during_its_polls_on_any_thread() {
    let (_profiler, gpu, first) = started();
    let streams = [first, gpu.stream(), gpu.stream()];
    let mut future = Box::pin(task(&gpu, &streams));
    for stream in &streams {
        on_a_thread(|| {
            gpu.context.bind_to_thread().expect("nothing failed");
            assert!(poll_once(future.as_mut()).is_pending());
            // Between the polls, others have the stream.
            let _scope = scope!("beside");
            operation(&gpu, stream, 70_000);
            wait(&gpu);
        });
    }
    assert!(poll_once(future.as_mut()).is_ready());
    gpu.finish();
    let task = cuda("task");
    assert_eq!(task.calls, 1);
    exact(task.total_ns, 30_000.0);
    assert_eq!(
        task.streams,
        streams.each_ref().map(|stream| name_of(stream))
    );
    exact(cuda("beside").total_ns, 210_000.0);
    assert_eq!(
        (row("task").without_stream, summary().cuda.lost),
        (0, vec![])
    );
}

#[test(on = driver())]
fn futures_inside_of_a_bound_future_are_its_children() {
    #[measure_execution_time(name = "both")]
    async fn both(gpu: &Gpu, streams: &[Arc<CudaStream>]) {
        streams.iter().for_each(bind_stream);
        let (mut one, mut other) = (
            pin!(task(gpu, &streams[..1])),
            pin!(task(gpu, &streams[1..])),
        );
        assert!(poll_once(one.as_mut()).is_pending());
        assert!(poll_once(other.as_mut()).is_pending());
        yields(1).await;
        one.await;
        other.await;
    }
    let (_profiler, gpu, first) = started();
    let streams = [first, gpu.stream()];
    run(both(&gpu, &streams));
    gpu.finish();
    let (both, task) = (cuda("both"), cuda("task"));
    assert_eq!((both.calls, task.calls), (1, 2));
    exact(task.total_ns, 20_000.0);
    // The second stream was bound last.
    exact(both.total_ns, 10_000.0);
    exact(both.self_ns, 0.0);
    exact(both.other_streams_ns, 10_000.0);
}

#[test(on = driver())]
fn a_future_that_is_dropped_early_has_the_time_until_then() {
    let (_profiler, gpu, first) = started();
    let streams = [first, gpu.stream()];
    {
        let _around = scope!("around");
        let mut future = Box::pin(task(&gpu, &streams));
        assert!(poll_once(future.as_mut()).is_pending());
        wait(&gpu);
        assert!(poll_once(future.as_mut()).is_pending());
        drop(future);
        gpu.spin(&streams[1], 50_000);
    }
    gpu.finish();
    assert_eq!((cuda("task").calls, row("task").dropped_futures), (1, 1));
    exact(cuda("task").total_ns, 20_000.0);
    assert!(row("around").cuda.is_none());
}

#[test(on = driver())]
fn a_future_that_names_its_stream_keeps_it() {
    #[measure_execution_time(name = "named", stream = stream)]
    async fn named(gpu: &Gpu, stream: &Arc<CudaStream>, other: &Arc<CudaStream>) {
        gpu.spin(stream, 10_000);
        operation(gpu, other, 20_000);
        yields(1).await;
        operation(gpu, other, 20_000);
        {
            let _inside = scope!("inside");
            operation(gpu, other, 5_000);
        }
    }
    let (_profiler, gpu, stream) = started();
    let other = gpu.stream();
    run(named(&gpu, &stream, &other));
    gpu.finish();
    exact(cuda("named").total_ns, 10_000.0);
    // The stream is busy with what was launched there before.
    exact(cuda("inside").total_ns, 5_000.0);
}

#[test(on = driver())]
fn guards_that_end_out_of_order_keep_their_streams() {
    let (_profiler, gpu, first) = started();
    let second = gpu.stream();
    let outer = scope!("outer");
    operation(&gpu, &first, 10_000);
    let inner = scope!("inner");
    operation(&gpu, &second, 20_000);
    drop(outer);
    gpu.spin(&second, 30_000);
    drop(inner);
    gpu.finish();
    exact(cuda("outer").total_ns, 10_000.0);
    exact(cuda("inner").total_ns, 50_000.0);
}

#[test(on = driver())]
fn a_stream_that_captures_is_left_alone_and_the_scope_is_counted() {
    let (_profiler, gpu, stream) = started();
    let captured = gpu.stream();
    begin(&captured);
    {
        let _scope = scope!("captures");
        operation(&gpu, &stream, 10_000);
        operation(&gpu, &captured, 20_000);
        operation(&gpu, &captured, 20_000);
    }
    let graph = end(&captured);
    assert_eq!(nodes(&graph), 2);
    {
        let _scope = scope!("begins a capture");
        operation(&gpu, &captured, 10_000);
        begin(&captured);
        gpu.spin(&captured, 10_000);
    }
    assert_eq!(nodes(&end(&captured)), 1);
    gpu.finish();
    for name in ["captures", "begins a capture"] {
        assert_eq!(
            (row(name).without_cuda, row(name).cuda.is_none()),
            (1, true),
            "{name}"
        );
    }
    assert_eq!(summary().cuda.lost, [(CudaLoss::Captured, 2)]);
    assert_eq!(spoiled(), 0);
}

#[test(on = driver())]
fn a_refusal_of_the_driver_is_counted_once_and_the_next_scope_is_measured() {
    let (_profiler, gpu, stream) = started();
    let other = gpu.stream();
    let run = |name: &str| {
        let _scope = scope!(name);
        operation(&gpu, &stream, 10_000);
        operation(&gpu, &other, 10_000);
        wait(&gpu);
    };
    run("first");
    settle();
    // The last one of the first stream, that of the second one, and the first one of all.
    for (number, code) in [(2, 400), (4, 400), (1, 1)] {
        tell(&format!("fault cuEventRecord nth {number} return {code}"));
        run("refused");
        settle();
        tell("clear-faults");
        run("again");
        settle();
    }
    gpu.finish();
    exact(cuda("first").total_ns, 20_000.0);
    assert_eq!(cuda("again").calls, 3);
    exact(cuda("again").total_ns, 60_000.0);
    assert_eq!(
        (row("refused").without_cuda, row("refused").cuda.is_none()),
        (3, true)
    );
    assert_eq!(lost(CudaLoss::InvalidHandle), 2);
    assert_eq!(lost(CudaLoss::DriverRefused), 1);
}

#[test(on = driver())]
fn a_thread_that_only_binds_measures_again_after_a_refusal() {
    let (_profiler, gpu, stream) = started();
    tell("fault cuEventRecord nth 1 return 800");
    for _ in 0..200 {
        let _scope = scope!("refused");
        operation(&gpu, &stream, 1_000);
    }
    gpu.finish();
    let (times, without) = (cuda("refused"), row("refused").without_cuda);
    assert_eq!((times.calls, without), (135, 65));
    assert_eq!(summary().cuda.lost, [(CudaLoss::HostFunction, 65)]);
}

#[test(on = driver().env("PROFILER_CUDA_EVENTS", "8"))]
fn a_call_without_an_event_for_one_of_its_streams_has_no_time() {
    let (_profiler, gpu, first) = started();
    let streams: Vec<_> = (0..20).map(|_| gpu.stream()).collect();
    {
        let _scope = scope!("bound");
        for stream in &streams {
            operation(&gpu, stream, 10_000);
        }
    }
    gpu.finish();
    {
        let _scope = scope!("after");
        operation(&gpu, &first, 10_000);
    }
    gpu.finish();
    assert_eq!(
        (row("bound").without_cuda, row("bound").cuda.is_none()),
        (1, true)
    );
    assert_eq!(summary().cuda.lost, [(CudaLoss::PoolEmpty, 1)]);
    exact(cuda("after").total_ns, 10_000.0);
}

#[test(on = driver())]
fn a_default_stream_without_a_context_leaves_the_call_without_a_time() {
    let (_profiler, gpu, stream) = started();
    on_a_thread(|| {
        let _scope = scope!("partly");
        operation_of_another_thread(&gpu, &stream);
        // SAFETY: it is a default stream, which is always there.
        bind_stream(unsafe { Stream::from_raw(std::ptr::null_mut(), std::ptr::null_mut()) });
    });
    gpu.finish();
    assert_eq!(
        (row("partly").without_cuda, row("partly").cuda.is_none()),
        (1, true)
    );
    assert_eq!(summary().cuda.lost, [(CudaLoss::NoContext, 1)]);
}

/// Binds a stream on a thread that has no context.
fn operation_of_another_thread(gpu: &Gpu, stream: &Arc<CudaStream>) {
    bind_stream(stream);
    on_a_thread(|| {
        gpu.context.bind_to_thread().expect("nothing failed");
        gpu.spin(stream, 10_000);
    });
}

#[test(on = driver())]
fn one_in_64_of_the_times_is_sampled_for_the_own_cost() {
    let (_profiler, gpu, stream) = started();
    for _ in 0..256 {
        let _scope = scope!("bound");
        operation(&gpu, &stream, 1_000);
    }
    gpu.finish();
    assert!(summary().own_cost.gpu_time_ns > 0.0);
}

#[test(on = driver()
    .env("PROFILER_CUDA_STREAM", "per-thread")
    .says_once("has no effect in scopes that are on"))]
fn a_default_stream_of_the_settings_stays_and_is_told() {
    let (_profiler, gpu, stream) = started();
    for _ in 0..2 {
        let _scope = scope!("implied");
        operation(&gpu, &stream, 10_000);
    }
    gpu.finish();
    exact(cuda("implied").total_ns, 0.0);
}

#[test(on = driver())]
fn a_future_that_names_its_stream_is_no_child_of_one_that_may_end_before() {
    #[measure_execution_time(name = "child", stream = stream)]
    async fn child(gpu: &Gpu, stream: &Arc<CudaStream>) {
        gpu.spin(stream, 10_000);
        yields(1).await;
        gpu.spin(stream, 10_000);
    }
    #[measure_execution_time(name = "parent")]
    async fn parent(gpu: &Gpu, stream: &Arc<CudaStream>) {
        bind_stream(stream);
        child(gpu, stream).await;
    }
    let (_profiler, gpu, stream) = started();
    run(parent(&gpu, &stream));
    gpu.finish();
    exact(cuda("child").self_ns, 20_000.0);
    exact(cuda("parent").total_ns, 10_000.0);
    exact(cuda("parent").self_ns, 10_000.0);
}

#[test(on = driver().env("PROFILER_CALLERS", "1"))]
fn inner_calls_of_a_recursion_have_their_names_while_callers_are_counted() {
    let (_profiler, gpu, stream) = started();
    let other = gpu.stream();
    recurse(&gpu, &stream, &other, 3);
    gpu.finish();
    // The program waits for both streams inside.
    exact(cuda("recursing").other_streams_ns, 30_000.0);
}

fn recurse(gpu: &Gpu, stream: &Arc<CudaStream>, other: &Arc<CudaStream>, depth: u32) {
    let _scope = scope!("recursing");
    operation(gpu, stream, 10_000);
    {
        let _elsewhere = scope!("elsewhere", stream = other);
        gpu.spin(other, 7_000);
        wait(gpu);
    }
    if depth > 1 {
        recurse(gpu, stream, other, depth - 1);
    }
}

#[test(on = driver())]
fn a_scope_that_ends_on_a_thread_that_does_not_know_it_is_counted() {
    let (_profiler, gpu, stream) = started();
    let (moved, taken) = mpsc::channel();
    let is_dropped = Barrier::new(2);
    thread::scope(|threads| {
        let opens = threads.spawn(|| {
            gpu.context.bind_to_thread().expect("nothing failed");
            let scope = scope!("moved");
            operation(&gpu, &stream, 10_000);
            moved.send(Moved(scope)).expect("it is awaited");
            is_dropped.wait();
        });
        let Moved(scope) = taken.recv().expect("it is sent");
        drop(scope);
        is_dropped.wait();
        opens.join().expect("it does not panic");
    });
    {
        let _scope = scope!("after");
        operation(&gpu, &stream, 1_000);
    }
    gpu.finish();
    assert_eq!((row("moved").calls, row("moved").without_cuda), (1, 1));
    assert_eq!(summary().cuda.lost, [(CudaLoss::Abandoned, 1)]);
}

/// A guard that a coroutine moves to another thread.
struct Moved<Guard>(Guard);

// SAFETY: the profiler tolerates it, as it must: stackful coroutines do it without asking.
unsafe impl<Guard> Send for Moved<Guard> {}

#[test(on = driver().then(records(0)))]
fn outside_of_scopes_in_a_handle_and_while_measuring_is_off_nothing_is_bound() {
    let (_profiler, gpu, stream) = started();
    operation(&gpu, &stream, 1_000);
    let handle = {
        let _asks = scope!("asks");
        Handle::current()
    };
    {
        let _entered = handle.enter();
        operation(&gpu, &stream, 1_000);
    }
    set_enabled(false);
    {
        let _off = scope!("off");
        operation(&gpu, &stream, 1_000);
    }
    set_enabled(true);
    gpu.finish();
    assert_eq!(summary().cuda.lost, []);
}

#[test(on = driver())]
fn a_scope_keeps_the_stream_alive_that_is_bound() {
    let (_profiler, gpu, _) = started();
    let scope = scope!("bound");
    let streams = [gpu.stream(), gpu.stream()];
    for stream in &streams {
        operation(&gpu, stream, 1_000);
    }
    let weak = streams.each_ref().map(Arc::downgrade);
    drop(streams);
    let are_alive = || weak.each_ref().map(|stream| stream.upgrade().is_some());
    assert_eq!(are_alive(), [false, true]);
    drop(scope);
    assert_eq!(are_alive(), [false, false]);
    gpu.finish();
    exact(cuda("bound").total_ns, 2_000.0);
}

#[test(on = driver())]
fn a_thread_that_ends_inside_of_a_bound_scope_gives_its_events_back() {
    let (_profiler, gpu, stream) = started();
    on_a_thread(|| {
        gpu.context.bind_to_thread().expect("nothing failed");
        let scope = scope!("left");
        operation(&gpu, &stream, 1_000);
        std::mem::forget(scope);
    });
    {
        let _scope = scope!("after");
        operation(&gpu, &stream, 2_000);
    }
    gpu.finish();
    assert!(row("left").cuda.is_none());
    exact(cuda("after").total_ns, 2_000.0);
}

#[test(on = driver())]
fn bound_scopes_make_no_call_that_can_block() {
    const STEPS: u64 = 50;
    let (_profiler, gpu, first) = started();
    let streams = [first, gpu.stream(), gpu.stream()];
    let bind_twice = |stream| (0..2).for_each(|_| bind_stream(stream));
    let step = || {
        let _outer = scope!("outer");
        bind_twice(&streams[0]);
        let _inner = scope!("inner");
        streams.iter().for_each(bind_twice);
    };
    for _ in 0..3 {
        (0..200).for_each(|_| step());
        gpu.finish();
    }
    let held = Held::call("cuEventQuery", 1);
    step();
    held.wait();
    let calls = || simulator().report().expect("a report").calls;
    let before = calls();
    (0..STEPS).for_each(|_| step());
    let after = calls();
    let made: Vec<(&str, u64)> = after
        .iter()
        .map(|(call, count)| (call.as_str(), count - before.get(call).unwrap_or(&0)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let expected = [
        ("cuCtxGetId", 8 * STEPS),
        ("cuEventRecord", 8 * STEPS),
        ("cuStreamIsCapturing", 8 * STEPS),
    ];
    assert_eq!(made, expected);
    drop(held);
    gpu.finish();
    assert_eq!(summary().cuda.lost, []);
    assert_eq!(cuda("outer").calls, cuda("inner").calls);
}

#[measure_execution_time(name = "recursive")]
async fn recursive(gpu: &Gpu, stream: &Arc<CudaStream>, depth: u32) {
    if depth > 0 {
        Box::pin(recursive(gpu, stream, depth - 1)).await;
    }
    operation(gpu, stream, 10_000);
    wait(gpu);
    yields(1).await;
}

#[test(on = driver())]
fn recursive_futures_keep_their_names() {
    let (_profiler, gpu, stream) = started();
    run(recursive(&gpu, &stream, 2));
    gpu.finish();
    let recursive = cuda("recursive");
    assert_eq!((recursive.calls, row("recursive").calls), (3, 3));
    exact(recursive.self_ns, 30_000.0);
    assert_eq!(summary().cuda.lost, []);
}

#[measure_execution_time(name = "polled")]
async fn polled<Guard>(gpu: &Gpu, streams: [&Arc<CudaStream>; 2], around: Guard) {
    {
        let _inside = scope!("inside");
        operation(gpu, streams[0], 10_000);
        wait(gpu);
        // Displaces what is inside.
        drop(around);
        operation(gpu, streams[0], 10_000);
        wait(gpu);
        operation(gpu, streams[1], 10_000);
        wait(gpu);
    }
    operation(gpu, streams[1], 20_000);
    yields(0).await;
}

#[test(on = driver())]
fn a_guard_that_ends_inside_a_younger_poll_leaves_what_is_inside_bound() {
    let (_profiler, gpu, first) = started();
    let second = gpu.stream();
    let around = scope!("around");
    bind_stream(&first);
    let mut future = pin!(polled(&gpu, [&first, &second], around));
    assert!(poll_once(future.as_mut()).is_ready());
    gpu.finish();
    for (name, total) in [
        ("around", 10_000.0),
        ("inside", 30_000.0),
        ("polled", 20_000.0),
    ] {
        let row = cuda(name);
        assert_eq!(row.calls, 1, "{name}");
        exact(row.total_ns, total);
    }
    assert_eq!(summary().cuda.lost, []);
}

#[test(on = driver())]
fn a_future_that_outlives_the_state_of_its_thread_is_counted() {
    #[measure_execution_time(name = "kept")]
    async fn kept(stream: Arc<CudaStream>) {
        bind_stream(&stream);
        yields(1).await;
    }
    thread_local! {
        static KEPT: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>> = const { RefCell::new(None) };
    }
    let (_profiler, gpu, stream) = started();
    on_a_thread(|| {
        // Registers its destructor before the profiler does: it runs after the profiler's.
        KEPT.with(|kept| assert!(kept.borrow().is_none()));
        gpu.context.bind_to_thread().expect("nothing failed");
        let mut future = Box::pin(kept(Arc::clone(&stream)));
        assert!(poll_once(future.as_mut()).is_pending());
        KEPT.with(|kept| *kept.borrow_mut() = Some(future));
    });
    gpu.finish();
    let kept = row("kept");
    assert_eq!((kept.dropped_futures, kept.without_cuda), (1, 1));
    assert!(kept.cuda.is_none());
}

#[test(on = driver())]
fn guards_that_many_futures_hold_are_counted_once() {
    #[measure_execution_time(name = "holds")]
    async fn holds(gpu: &Gpu, stream: &Arc<CudaStream>) {
        bind_stream(stream);
        let _held = scope!("held");
        operation(gpu, stream, 1_000);
        yields(1).await;
    }
    const FUTURES: u64 = 70;
    let (_profiler, gpu, stream) = started();
    let mut futures: Vec<_> = (0..FUTURES)
        .map(|_| Box::pin(holds(&gpu, &stream)))
        .collect();
    for _ in 0..2 {
        for future in &mut futures {
            let _ = poll_once(future.as_mut());
        }
    }
    gpu.finish();
    let (held, times) = (row("held"), cuda("held"));
    assert_eq!((held.calls, held.without_stream), (FUTURES, 0));
    // A thread keeps 64 scopes that are displaced.
    assert_eq!((times.calls, held.without_cuda), (64, 6));
    assert_eq!(summary().cuda.lost, [(CudaLoss::Abandoned, 6)]);
    assert_eq!(cuda("holds").calls, FUTURES);
}

#[test(on = driver())]
fn logged_calls_have_the_sum_as_their_gpu_time() {
    let (_profiler, gpu, first) = started();
    let second = gpu.stream();
    let kept = Arc::new(Kept::default());
    for _ in 0..3 {
        let _scope = scope!("logged", log = kept.clone());
        operation(&gpu, &first, 1_000_000);
        operation(&gpu, &second, 2_000_000);
    }
    gpu.finish();
    settle();
    let times: Vec<_> = kept.of("logged").iter().map(|got| got.cuda).collect();
    assert_eq!(times.len(), 3);
    for time in times {
        exact(time.expect("a GPU time").ms * 1e6, 3_000_000.0);
    }
}

/// Scopes that spend their time on the CPU before they bind a stream and launch.
fn late_launches(gpu: &Gpu, stream: &Arc<CudaStream>) {
    for _ in 0..20 {
        let _scope = scope!("late");
        work(300);
        operation(gpu, stream, 20_000);
        wait(gpu);
    }
}

#[test(on = driver())]
fn what_the_cpu_did_before_a_stream_was_bound_is_no_launch_time() {
    let (_profiler, gpu, stream) = started();
    let profile = Profile::builder().start().expect("started");
    late_launches(&gpu, &stream);
    gpu.finish();
    let averages = stopped(&profile).timeline().key_averages();
    for row in [
        &row("late"),
        averages
            .rows
            .iter()
            .find(|row| row.name == "late")
            .expect("it ran"),
    ] {
        let times = row.cuda.as_ref().expect("a GPU time");
        assert_eq!((times.calls, row.launch_bound), (20, None));
        exact(times.total_ns, 400_000.0);
    }
}

fn stopped(profile: &Profile) -> Arc<Trace> {
    stop(profile);
    profile.trace().expect("a trace")
}

/// A function that binds two streams, and one inside.
fn nested(gpu: &Gpu, first: &Arc<CudaStream>, second: &Arc<CudaStream>) {
    let _outer = scope!("outer");
    bind_stream(first);
    {
        let _inner = scope!("inner");
        operation(gpu, first, 300_000);
        wait(gpu);
        operation(gpu, second, 200_000);
        wait(gpu);
    }
}

#[test(on = driver())]
fn a_window_has_the_sums_in_its_tables_and_its_files() {
    let (_profiler, gpu, first) = started();
    let second = gpu.stream();
    let profile = Profile::builder().start().expect("started");
    nested(&gpu, &first, &second);
    gpu.finish();
    let trace = stopped(&profile);
    let timeline = trace.timeline();
    let missing = timeline
        .missing
        .iter()
        .find(|(what, _)| what.contains("bind_stream"));
    assert_eq!(
        missing.map(|(_, count)| *count),
        Some(2),
        "{:?}",
        timeline.missing
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.json");
    trace.export_chrome_trace(&file).expect("it is written");
    let file = read_back(&file);
    for (averages, place) in [
        (trace.key_averages(), "window"),
        (timeline.key_averages(), "time line"),
        (file.key_averages(), "file"),
    ] {
        for name in ["outer", "inner"] {
            let row = averages.rows.iter().find(|row| row.name == name);
            let row = row.expect("it ran");
            let times = row.cuda.as_ref().expect("a GPU time");
            assert_eq!((times.calls, row.launch_bound), (1, None), "{place}");
            exact(times.total_ns, cuda(name).total_ns);
            exact(times.self_ns, cuda(name).self_ns);
        }
    }
    exact(cuda("outer").total_ns, 500_000.0);
    exact(cuda("outer").self_ns, 200_000.0);
    exact(cuda("inner").self_ns, 500_000.0);
}

#[test(on = driver().script("clock real").set_up(cupti_of_driver))]
fn a_window_with_kernels_has_those_and_no_note_on_their_streams() {
    let (_profiler, gpu, first) = started();
    let second = gpu.stream();
    let profile = Profile::builder().kernels(true).start().expect("started");
    nested(&gpu, &first, &second);
    gpu.finish();
    let trace = stopped(&profile);
    let averages = trace.timeline().key_averages();
    let of = |name: &str| {
        let row = averages.rows.iter().find(|row| row.name == name);
        row.and_then(|row| row.cuda.as_ref()).expect("a GPU time")
    };
    exact(of("inner").total_ns, 500_000.0);
    exact(of("inner").self_ns, 500_000.0);
    exact(of("outer").total_ns, 500_000.0);
    exact(of("outer").self_ns, 0.0);
    assert_eq!(trace.truncation().unread, 0);
    let text = trace.key_averages().to_string();
    assert!(!text.contains("which no scope around"), "{text}");
    assert!(!text.contains("contradict"), "{text}");
}

#[test(on = driver().script("clock real").set_up(cupti_of_driver))]
fn a_window_with_kernels_has_the_time_of_a_call_that_launched_none_of_them() {
    let (_profiler, gpu, stream) = started();
    let profile = Profile::builder().kernels(true).start().expect("started");
    {
        let _scope = scope!("bound");
        operation_of_another_thread(&gpu, &stream);
        wait(&gpu);
    }
    gpu.finish();
    let averages = stopped(&profile).key_averages();
    let row = averages.rows.iter().find(|row| row.name == "bound");
    let times = row.and_then(|row| row.cuda.as_ref()).expect("a GPU time");
    assert_eq!(times.calls, 1);
    exact(times.total_ns, cuda("bound").total_ns);
}

#[test(on = driver().script("clock real").set_up(cupti_of_driver))]
fn a_window_that_lacks_kernels_of_a_call_has_its_sum() {
    let (_profiler, gpu, first) = started();
    let second = gpu.stream();
    let profile = Profile::builder().kernels(true).start().expect("started");
    {
        let _scope = scope!("bound");
        operation(&gpu, &first, 300_000);
        operation(&gpu, &second, 300_000);
        wait(&gpu);
        profile.toggle_collection(false, [Activity::Cuda]);
        operation(&gpu, &first, 300_000);
        wait(&gpu);
        profile.toggle_collection(true, [Activity::Cuda]);
    }
    gpu.finish();
    let averages = stopped(&profile).key_averages();
    let row = averages.rows.iter().find(|row| row.name == "bound");
    let times = row.and_then(|row| row.cuda.as_ref()).expect("a GPU time");
    exact(times.total_ns, cuda("bound").total_ns);
    // The kernels that were recorded are in it.
    let others = averages.rows.iter().filter(|row| row.name != "bound");
    assert!(others.clone().all(|row| row.cuda.is_none()), "{averages}");
}

#[test(on = driver().script("clock real").set_up(cupti_of_driver))]
fn functions_inside_of_a_bound_scope_are_not_said_to_lack_a_stream() {
    let (_profiler, gpu, stream) = started();
    let named = gpu.stream();
    let profile = Profile::builder().kernels(true).start().expect("started");
    {
        let _outer = scope!("outer");
        bind_stream(&stream);
        {
            let _inner = scope!("inner");
            gpu.spin(&stream, 100_000);
        }
    }
    {
        let _around = scope!("around");
        operation_of_another_thread(&gpu, &stream);
        wait(&gpu);
        let _named = scope!("named", stream = &named);
        gpu.spin(&named, 100_000);
    }
    gpu.finish();
    let averages = stopped(&profile).key_averages();
    let text = averages.to_string();
    assert!(!text.contains("which no scope around"), "{text}");
    // What has a time of its own says nothing of the scope around.
    let around = averages.rows.iter().find(|row| row.name == "around");
    let around = around
        .and_then(|row| row.cuda.as_ref())
        .expect("a GPU time");
    exact(around.total_ns, cuda("around").total_ns);
}

#[test(on = driver())]
fn a_scope_with_options_and_without_a_stream_is_bound_as_any_other() {
    let (_profiler, gpu, stream) = started();
    {
        let _scope = scope!("waits", sync = true);
        operation(&gpu, &stream, 10_000);
    }
    gpu.finish();
    exact(cuda("waits").total_ns, 10_000.0);
}
