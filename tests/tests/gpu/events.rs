//! However a scope ends, its events go back to where they came from: none is leaked, and none is used by two
//! scopes at once.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::{MeasureFuture, init, scope, summary};
use profiler_simulated_driver::Report;
use profiler_tests::allocator::BYTES;
use profiler_tests::gpu::{
    Gpu, Ran, cuda, driver, exact, finish, lost, on_a_thread, on_threads, row, settle, started,
};

/// No time that an event held was thrown away, but for those of anchors, which stand on streams of our own.
fn each_time_was_read(report: &Report, streams: &[u64]) {
    let of_anchors = report
        .event_records()
        .filter(|record| record.stream > 2 && !streams.contains(&record.stream))
        .count() as u64;
    assert!(
        report.unread_records <= of_anchors,
        "{} of {of_anchors}",
        report.unread_records
    );
}

/// Eight pairs, and the two events that place them on the time line.
fn makes_eight_pairs(ran: &Ran) {
    assert_eq!(ran.report.created.events, 18);
}

#[test(on = driver().env("PROFILER_CUDA_EVENTS", "8").then(makes_eight_pairs))]
fn a_pool_at_its_cap_costs_gpu_times_only() {
    let (_profiler, gpu, stream) = started();
    for round in 1..=3 {
        for _ in 0..50 {
            let _scope = scope!("many", stream = &stream);
            gpu.spin(&stream, 10_000);
        }
        finish(&stream);
        let (many, times) = (row("many"), cuda("many"));
        assert_eq!((many.calls, many.open), (50 * round, 0));
        assert_eq!(times.calls + many.without_cuda, 50 * round);
        assert!(
            times.calls >= 8 * round,
            "eight pairs were free: {}",
            times.calls
        );
        assert_eq!(lost(CudaLoss::PoolEmpty), many.without_cuda);
        exact(times.total_ns, times.calls as f64 * 10_000.0);
    }
    let health = summary().cuda;
    assert_eq!(
        (health.pairs, health.high_water <= 8),
        (8, true),
        "{health:?}"
    );
}

#[test(on = driver().env("PROFILER_CUDA_EVENTS", "256"))]
fn threads_that_do_nothing_leave_the_others_their_events() {
    const THREADS: usize = 20;

    let (_profiler, gpu, stream) = started();
    let (measured, ended) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    std::thread::scope(|threads| {
        let idle = || {
            drop(scope!("idle", stream = &stream));
            measured.wait();
            ended.wait();
        };
        let idle: Vec<_> = (0..THREADS).map(|_| threads.spawn(idle)).collect();
        measured.wait();
        finish(&stream);
        for _ in 0..50 {
            let _scope = scope!("busy", stream = &stream);
            gpu.spin(&stream, 10_000);
        }
        ended.wait();
        // Unlike the end of `thread::scope`, this waits for the destructors of thread-locals, which give the events back.
        for thread in idle {
            thread.join().expect("it does not panic");
        }
    });
    finish(&stream);
    assert_eq!((cuda("idle").calls, cuda("busy").calls), (20, 50));
    assert_eq!(summary().cuda.lost, []);
    assert!(summary().cuda.pairs <= 256, "{:?}", summary().cuda);
}

#[test(on = driver())]
fn a_scope_may_end_in_any_way() {
    let (_profiler, gpu, stream) = started();
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..100 {
        // By a panic.
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _scope = scope!("panics", stream = &stream);
            gpu.spin(&stream, 1_000);
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(panicked.is_err());
        // As a future that is dropped before its end, and as one that ends.
        let mut polls = 0;
        let work = poll_fn(|_| {
            gpu.spin(&stream, 2_000);
            polls += 1;
            if polls == 3 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        let mut dropped = Box::pin(work.measure_execution_time("dropped").stream(&stream));
        assert!(dropped.as_mut().poll(&mut context).is_pending());
        drop(dropped);
        // In another order than they were opened.
        let older = scope!("older", stream = &stream);
        gpu.spin(&stream, 3_000);
        let younger = scope!("younger", stream = &stream);
        gpu.spin(&stream, 4_000);
        drop(older);
        gpu.spin(&stream, 5_000);
        drop(younger);
        // In another poll than it was opened in, beside another future.
        let mut held = None;
        let mut first = true;
        let holding = poll_fn(|_| {
            if std::mem::take(&mut first) {
                held = Some(scope!("held", stream = &stream));
                gpu.spin(&stream, 6_000);
                return Poll::Pending;
            }
            held = None;
            Poll::Ready(())
        });
        let mut holding = pin!(holding.measure_execution_time("holds").stream(&stream));
        assert!(holding.as_mut().poll(&mut context).is_pending());
        {
            let _between = scope!("between", stream = &stream);
            gpu.spin(&stream, 7_000);
        }
        assert!(holding.as_mut().poll(&mut context).is_ready());
        // On a thread that ends inside of it.
        on_a_thread(|| std::mem::forget(scope!("open at the end", stream = &stream)));
        finish(&stream);
    }
    let lengths = [
        ("panics", 1_000.0),
        ("dropped", 2_000.0),
        ("older", 7_000.0),
        ("younger", 9_000.0),
        ("held", 13_000.0),
        ("between", 7_000.0),
        ("holds", 13_000.0),
    ];
    for (name, ns) in lengths {
        assert_eq!(
            (cuda(name).calls, row(name).without_cuda),
            (100, 0),
            "{name}"
        );
        exact(cuda(name).min_ns, ns);
        exact(cuda(name).max_ns, ns);
    }
    assert_eq!(summary().cuda.lost, [(CudaLoss::Abandoned, 100)]);
    assert!(summary().cuda.pairs <= 256, "{:?}", summary().cuda);
}

#[test(on = driver())]
fn guards_that_are_forgotten_cost_bounded_memory() {
    const GUARDS: u64 = 10_000;

    let (_profiler, gpu, stream) = started();
    let forget = |guards| {
        let before = BYTES.load(Relaxed);
        for _ in 0..guards {
            std::mem::forget(scope!("forgotten", stream = &stream));
        }
        BYTES.load(Relaxed) - before
    };
    std::thread::scope(|threads| {
        let thread = threads.spawn(|| {
            forget(GUARDS);
            let more = forget(2 * GUARDS);
            assert!(
                more < 1 << 20,
                "twice as many guards took {more} bytes more"
            );
            // The thread is measured all the same.
            for _ in 0..10 {
                let _scope = scope!("after", stream = &stream);
                gpu.spin(&stream, 10_000);
            }
        });
        thread.join().expect("it does not panic");
    });
    finish(&stream);
    assert_eq!(
        (row("forgotten").calls, row("forgotten").without_cuda),
        (0, 3 * GUARDS)
    );
    assert_eq!(
        lost(CudaLoss::Abandoned) + lost(CudaLoss::PoolEmpty),
        3 * GUARDS
    );
    assert_eq!((row("after").calls, cuda("after").calls), (10, 10));
    exact(cuda("after").total_ns, 100_000.0);
    assert!(summary().cuda.pairs <= 4_096, "{:?}", summary().cuda);
}

#[test(on = driver())]
fn threads_that_come_and_go_leave_their_events() {
    const THREADS: u64 = 64;
    const CALLS: u64 = 50;

    let (_profiler, gpu, shared) = started();
    for _ in 0..4 {
        on_threads(0..THREADS / 4, |_| {
            let own = gpu.stream();
            for _ in 0..CALLS {
                let _own = scope!("own", stream = &own);
                gpu.spin(&own, 2_000);
                let _shared = scope!("shared", stream = &shared);
            }
        });
        // Only now does the clock move, and the device pass anything.
        gpu.finish();
    }
    for name in ["own", "shared"] {
        assert_eq!(
            (row(name).calls, row(name).without_cuda),
            (THREADS * CALLS, 0),
            "{name}"
        );
        assert_eq!(cuda(name).calls, THREADS * CALLS, "{name}");
    }
    exact(cuda("own").min_ns, 2_000.0);
    exact(cuda("own").max_ns, 2_000.0);
    exact(cuda("shared").total_ns, 0.0);
    assert!(cuda("own").streams.len() <= 8);
    // Twice as many as are in use at once, and what each thread has at hand.
    assert!(summary().cuda.pairs <= 4_096, "{:?}", summary().cuda);
    assert_eq!(summary().cuda.in_flight, 0);
}

fn each_stream_was_read(ran: &Ran) {
    let mut lines = ran.stdout.lines();
    let said = lines.find_map(|line| line.split_once("streams: "));
    let (_, streams) = said.expect("the child tells its streams");
    let streams = streams.split(' ').filter_map(|text| text.parse().ok());
    let streams: Vec<u64> = streams.collect();
    assert_eq!(streams.len(), 3);
    each_time_was_read(&ran.report, &streams);
}

#[test(on = driver().then(each_stream_was_read))]
fn no_event_is_recorded_again_before_it_was_read() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let streams = [gpu.stream(), gpu.stream(), gpu.stream()];
    for round in 0..40 {
        for (index, stream) in streams.iter().enumerate() {
            for _ in 0..5 * (index + 1) {
                let _outer = scope!("outer", stream = stream);
                gpu.spin(stream, 1_000);
                let _inner = scope!("inner", stream = stream);
                gpu.spin(stream, 2_000);
            }
        }
        // Some streams are passed long before others.
        streams[round % 3].synchronize().expect("nothing failed");
        if round % 5 == 0 {
            for stream in &streams {
                stream.synchronize().expect("nothing failed");
            }
            settle();
        }
    }
    for stream in &streams {
        stream.synchronize().expect("nothing failed");
    }
    settle();
    for (name, ns) in [("outer", 3_000.0), ("inner", 2_000.0)] {
        assert_eq!(
            (cuda(name).calls, row(name).without_cuda),
            (1_200, 0),
            "{name}"
        );
        exact(cuda(name).min_ns, ns);
        exact(cuda(name).max_ns, ns);
    }
    let handles: Vec<String> = streams
        .iter()
        .map(|stream| (stream.cu_stream().addr()).to_string())
        .collect();
    println!("streams: {}", handles.join(" "));
}
