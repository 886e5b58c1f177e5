//! A scope that is bound to streams after it has begun has the time that they cover together. Scopes around are those of their
//! own streams, as ever. A stream that cannot be measured is told, and nothing waits.

use std::pin::pin;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use profiler_runtime::cuda::{CudaLoss, bind_stream};
use profiler_runtime::{Handle, Profile, measure_execution_time, scope, set_enabled, summary};
use profiler_tests::allocator::allocations;
use profiler_tests::gpu::{
    Gpu, Held, Ran, cuda, cupti_of_driver, driver, exact, lost, name_of, on_a_thread, row, settle,
    started, tell,
};
use profiler_tests::poll::{poll_once, run, yields};
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
fn streams_that_work_at_once_count_once_and_one_after_the_other_both() {
    let (_profiler, gpu, first) = started();
    let second = gpu.stream();
    for _ in 0..3 {
        let _at_once = scope!("at once");
        bind_stream(&first);
        bind_stream(&second);
        gpu.spin(&first, 30_000);
        gpu.spin(&second, 50_000);
        wait(&gpu);
    }
    {
        let _in_turn = scope!("in turn");
        operation(&gpu, &first, 30_000);
        wait(&gpu);
        operation(&gpu, &second, 20_000);
    }
    gpu.finish();
    let at_once = cuda("at once");
    assert_eq!(at_once.calls, 3);
    exact(at_once.total_ns, 150_000.0);
    let in_turn = cuda("in turn");
    exact(in_turn.total_ns, 50_000.0);
    exact(in_turn.self_ns, 50_000.0);
    assert_eq!(in_turn.streams, [name_of(&first), name_of(&second)]);
}

// Three streams, and two events on each; and the anchor's.
#[test(on = driver().then(|ran| {
    assert!((6..=8).contains(&ran.report.calls_of("cuEventRecord")), "{:?}", ran.report.calls);
}))]
fn binding_a_stream_again_does_nothing_and_the_named_stream_stays() {
    let (_profiler, gpu, named) = started();
    let (other, third) = (gpu.stream(), gpu.stream());
    {
        let _scope = scope!("named", stream = &named);
        gpu.spin(&named, 10_000);
        for _ in 0..50 {
            bind_stream(&other);
            bind_stream(&named);
            bind_stream(third.clone());
        }
        gpu.spin(&other, 20_000);
    }
    gpu.finish();
    let named_row = cuda("named");
    exact(named_row.total_ns, 20_000.0);
    assert_eq!(
        named_row.streams,
        [name_of(&named), name_of(&other), name_of(&third)]
    );
    assert_eq!(summary().cuda.lost, []);
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
            // From here on, this stream is also one of the scope around.
            operation(&gpu, &second, 2_000);
            wait(&gpu);
            {
                let _inner = scope!("on both");
                bind_stream(&second);
                bind_stream(&first);
                gpu.spin(&second, 30_000);
                gpu.spin(&first, 40_000);
                wait(&gpu);
            }
        }
        {
            let _named = scope!("named", stream = &named);
            gpu.spin(&named, 40_000);
            let _inner = scope!("inner of named");
            operation(&gpu, &first, 70_000);
            operation(&gpu, &second, 30_000);
            wait(&gpu);
            operation(&gpu, &named, 3_000);
        }
    }
    gpu.finish();
    for (name, total, own, elsewhere) in [
        ("inner", 20_000.0, 20_000.0, 0.0),
        ("on both", 40_000.0, 40_000.0, 0.0),
        // The first stream passes both events of the inner one while the second is busy.
        ("bound", 67_000.0, 7_000.0, 20_000.0),
        ("inner of named", 73_000.0, 73_000.0, 0.0),
        ("named", 73_000.0, 70_000.0, 70_000.0),
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
fn a_future_stays_bound_on_every_thread_that_polls_it() {
    let (_profiler, gpu, first) = started();
    let streams = [first, gpu.stream(), gpu.stream()];
    let mut future = Box::pin(task(&gpu, &streams));
    for stream in &streams {
        on_a_thread(|| {
            gpu.context.bind_to_thread().expect("nothing failed");
            assert!(poll_once(future.as_mut()).is_pending());
            // Bound already, and by a poll of another thread.
            let _scope = scope!("beside");
            bind_stream(stream);
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
    assert_eq!(
        (row("task").without_stream, summary().cuda.lost),
        (0, vec![])
    );
}

#[test(on = driver())]
fn futures_that_overlap_count_once_in_the_one_around_them() {
    /// On the streams of both.
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
    exact(both.total_ns, 10_000.0);
    exact(both.self_ns, 0.0);
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

#[test(on = driver().says(["more than 16 streams"]))]
fn a_scope_has_sixteen_streams_and_no_time_with_one_more() {
    let (_profiler, gpu, _) = started();
    let streams: Vec<_> = (0..17).map(|_| gpu.stream()).collect();
    for count in [16, 17] {
        let _scope = scope!(format!("{count} streams").as_str());
        for stream in &streams[..count] {
            operation(&gpu, stream, 1_000);
        }
        wait(&gpu);
    }
    gpu.finish();
    exact(cuda("16 streams").total_ns, 1_000.0);
    let lost_row = row("17 streams");
    assert_eq!((lost_row.without_cuda, lost_row.cuda.is_none()), (1, true));
    assert_eq!(lost(CudaLoss::TooManyStreams), 1);
    eprintln!("{}", summary());
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
fn a_refusal_of_the_driver_is_counted_and_the_next_scope_is_measured() {
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
    // The first one of the second stream, and then the last one.
    for (number, code) in [(2, 400), (4, 400), (1, 1)] {
        tell(&format!("fault cuEventRecord nth {number} return {code}"));
        run("refused");
        settle();
        tell("clear-faults");
    }
    run("again");
    gpu.finish();
    for name in ["first", "again"] {
        exact(cuda(name).total_ns, 10_000.0);
    }
    assert_eq!(
        (row("refused").without_cuda, row("refused").cuda.is_none()),
        (3, true)
    );
    assert_eq!(lost(CudaLoss::InvalidHandle), 2);
    assert_eq!(lost(CudaLoss::DriverRefused), 1);
}

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
fn a_scope_keeps_its_streams_alive() {
    let (_profiler, gpu, _) = started();
    let scope = scope!("bound");
    let streams = [gpu.stream(), gpu.stream()];
    for stream in &streams {
        operation(&gpu, stream, 1_000);
    }
    let weak = streams.each_ref().map(Arc::downgrade);
    drop(streams);
    assert!(
        weak.iter().all(|stream| stream.upgrade().is_some()),
        "its scope is open"
    );
    drop(scope);
    assert!(
        weak.iter().all(|stream| stream.upgrade().is_none()),
        "nobody needs it"
    );
    gpu.finish();
    exact(cuda("bound").total_ns, 1_000.0);
}

#[test(on = driver())]
fn in_the_steady_state_bound_scopes_allocate_nothing_and_make_no_call_that_can_block() {
    const STEPS: u64 = 50;
    let (_profiler, gpu, first) = started();
    let streams = [first, gpu.stream(), gpu.stream()];
    let step = || {
        let _outer = scope!("outer");
        bind_stream_twice(&streams[0]);
        let _inner = scope!("inner");
        streams.iter().for_each(bind_stream_twice);
    };
    for _ in 0..20 {
        (0..200).for_each(|_| step());
        gpu.finish();
    }
    let held = Held::call("cuEventQuery", 1);
    step();
    held.wait();
    let report = || {
        profiler_tests::gpu::simulator()
            .report()
            .expect("a report")
            .calls
    };
    let (before, allocated) = (report(), allocations());
    (0..STEPS).for_each(|_| step());
    let allocated = allocations() - allocated;
    let after = report();
    assert_eq!(allocated, 0);
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

fn bind_stream_twice(stream: &Arc<CudaStream>) {
    bind_stream(stream);
    bind_stream(stream);
}

#[test(on = driver().script("clock real").set_up(cupti_of_driver))]
fn windows_have_each_stream_and_count_kernels_once() {
    let (_profiler, gpu, first) = started();
    let second = gpu.stream();
    let profile = Profile::builder().kernels(true).start().expect("started");
    {
        let _outer = scope!("outer");
        bind_stream(&first);
        {
            let _inner = scope!("inner");
            operation(&gpu, &first, 300_000);
            wait(&gpu);
            operation(&gpu, &second, 200_000);
            wait(&gpu);
        }
    }
    gpu.finish();
    stop(&profile);
    let trace = profile.trace().expect("a trace");
    let timeline = trace.timeline();
    let averages = timeline.key_averages();
    let of = |name: &str| {
        let row = averages.rows.iter().find(|row| row.name == name);
        row.and_then(|row| row.cuda.as_ref()).expect("a GPU time")
    };
    let (outer, inner) = (of("outer"), of("inner"));
    assert!(inner.total_ns >= 499_990.0, "{inner:?}");
    assert_eq!((inner.calls, outer.calls), (1, 1));
    assert!((inner.self_ns - inner.total_ns).abs() < 1.5, "{inner:?}");
    // On the first stream, it has what is inside.
    assert!(outer.total_ns >= inner.total_ns, "{outer:?}");
    let text = averages.to_string();
    assert!(!text.contains("which no scope around"), "{text}");
    assert!(!text.contains("contradict"), "{text}");
    let streams = |name: &str| {
        let slices = timeline.slices.iter().filter(|slice| {
            slice.kind == profiler_runtime::report::SliceKind::GpuScope
                && &*timeline.names[slice.name as usize].text == name
        });
        slices.count()
    };
    assert_eq!((streams("inner"), streams("outer")), (2, 1));
    exact(cuda("inner").total_ns, inner.total_ns);
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
    late_launches(&gpu, &stream);
    gpu.finish();
    assert_eq!((cuda("late").calls, row("late").launch_bound), (20, None));
}

#[test(on = driver().script("clock real").set_up(cupti_of_driver))]
fn windows_do_not_judge_the_launches_of_late_streams() {
    let (_profiler, gpu, stream) = started();
    let profile = Profile::builder().start().expect("started");
    late_launches(&gpu, &stream);
    gpu.finish();
    stop(&profile);
    let averages = profile.trace().expect("a trace").timeline().key_averages();
    let row = averages.rows.iter().find(|row| row.name == "late");
    let row = row.expect("it ran");
    assert!(row.cuda.is_some());
    assert_eq!(row.launch_bound, None);
}

#[test(on = driver().script("clock real").set_up(cupti_of_driver))]
fn kernels_before_a_stream_is_bound_are_not_in_the_time_of_the_scope() {
    let (_profiler, gpu, stream) = started();
    let profile = Profile::builder().kernels(true).start().expect("started");
    {
        let _bound = scope!("bound");
        gpu.spin(&stream, 3_000_000);
        wait(&gpu);
        operation(&gpu, &stream, 1_000_000);
    }
    gpu.finish();
    stop(&profile);
    let averages = profile.trace().expect("a trace").timeline().key_averages();
    let of = |is_it: &dyn Fn(&str) -> bool| {
        let rows = averages.rows.iter().filter(|row| is_it(&row.name));
        let times = rows.filter_map(|row| row.cuda.as_ref());
        times.map(|times| times.self_ns).sum::<f64>()
    };
    let bound = of(&|name| name == "bound");
    assert!(bound >= 990_000.0, "{averages}");
    // The kernel before has a row of its own.
    assert!(of(&|name| name != "bound") >= 2_990_000.0, "{averages}");
    let text = averages.to_string();
    assert!(!text.contains("contradict"), "{text}");
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

#[measure_execution_time(name = "polled")]
async fn polled<Guard>(gpu: &Gpu, streams: [&Arc<CudaStream>; 2], around: Guard) {
    {
        let _inside = scope!("inside");
        operation(gpu, streams[0], 10_000);
        wait(gpu);
        // Displaces the poll, and what is inside.
        drop(around);
        operation(gpu, streams[0], 10_000);
        wait(gpu);
        operation(gpu, streams[1], 10_000);
        wait(gpu);
    }
    operation(gpu, streams[1], 20_000);
}

#[test(on = driver())]
fn a_guard_that_ends_inside_a_younger_poll_leaves_what_is_inside_bound() {
    let (_profiler, gpu, first) = started();
    let second = gpu.stream();
    let around = scope!("around");
    bind_stream(&first);
    let mut future = pin!(polled(&gpu, [&first, &second], around));
    assert!(poll_once(future.as_mut()).is_ready());
    // What seems to be innermost has ended.
    operation(&gpu, &second, 70_000);
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
fn a_scope_with_options_and_without_a_stream_is_bound_as_any_other() {
    let (_profiler, gpu, stream) = started();
    {
        let _scope = scope!("waits", sync = true);
        operation(&gpu, &stream, 10_000);
    }
    gpu.finish();
    exact(cuda("waits").total_ns, 10_000.0);
}

#[test(on = driver()
    .script("synchronise allow")
    .says_once("has no effect in scopes with a stream and `cuda_graph` or `sync`"))]
fn a_scope_that_waits_for_its_stream_is_not_bound_to_others() {
    let (_profiler, gpu, stream) = started();
    let other = gpu.stream();
    {
        let _scope = scope!("waits", stream = &stream, sync = true);
        gpu.spin(&stream, 10_000);
        {
            let _inside = scope!("inside");
            operation(&gpu, &other, 30_000);
        }
        operation(&gpu, &other, 50_000);
    }
    gpu.finish();
    exact(cuda("waits").total_ns, 10_000.0);
    exact(cuda("inside").total_ns, 30_000.0);
}

#[test(on = driver())]
fn streams_are_released_when_all_last_events_are_recorded() {
    const STREAMS: usize = 8;
    let (_profiler, gpu, stream) = started();
    {
        let _scope = scope!("before");
        operation(&gpu, &stream, 1_000);
    }
    gpu.finish();
    let streams: Vec<_> = (0..STREAMS).map(|_| gpu.stream()).collect();
    let records = || {
        let report = profiler_tests::gpu::simulator().report();
        report.expect("a report").calls_of("cuEventRecord")
    };
    let before = records();
    let held = Held::call("cuStreamDestroy_v2", 1);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            gpu.context.bind_to_thread().expect("nothing failed");
            let _scope = scope!("bound");
            streams.iter().for_each(bind_stream);
            drop(streams);
        });
        held.wait();
        assert!(records() - before >= 2 * STREAMS as u64);
        drop(held);
    });
    gpu.finish();
    assert_eq!((cuda("bound").calls, summary().cuda.lost), (1, vec![]));
}
