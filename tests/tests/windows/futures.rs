//! A window holds each future that was first polled and ended in it, once, with what ran in its polls, whatever
//! threads polled it and however it ended.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use profiler_runtime::session::Event;
use profiler_runtime::{MeasureFuture, Profile, Schedule, Trace, measure_execution_time, scope};
use profiler_tests::gpu::{driver, exact, started};
use profiler_tests::poll;
use profiler_tests::stop;
use profiler_tests::work;

const PATIENCE: Duration = Duration::from_secs(60);

fn of<'t>(trace: &'t Trace, name: &str) -> Vec<Event<'t>> {
    trace
        .events()
        .filter(|event| event.name() == name)
        .collect()
}

fn run(f: impl FnOnce()) -> std::sync::Arc<Trace> {
    let ((), trace) = Profile::builder().run(|_| f());
    let trace = trace.expect("a window");
    assert!(trace.truncation().is_complete(), "{:?}", trace.truncation());
    trace
}

#[measure_execution_time(name = "futures: attribute")]
async fn measured(label: &str, times: usize) {
    for _ in 0..times {
        work(20);
        drop(scope!(label));
        poll::yields(1).await;
    }
}

#[test(measuring)]
fn scopes_in_a_future_are_its_children_on_all_threads() {
    let trace = run(|| {
        let mut future: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(measured("futures: part", 6));
        let mut is_ready = false;
        while !is_ready {
            // Each poll on a thread of its own, inside of a scope that has nothing to do with it.
            let polled = thread::spawn(move || {
                let _around = scope!("futures: around");
                let is_ready = poll::poll_once(Pin::new(&mut future)).is_ready();
                (future, is_ready)
            });
            (future, is_ready) = polled.join().expect("it does not panic");
        }
    });
    let futures = of(&trace, "futures: attribute");
    assert_eq!(futures.len(), 1);
    let future = futures[0];
    assert!(future.is_future() && !future.has_panicked() && !future.is_dropped());
    let parts = of(&trace, "futures: part");
    assert_eq!(parts.len(), 6);
    for part in &parts {
        assert_eq!(part.parent().map(Event::name), Some("futures: attribute"));
        assert!(!part.is_future());
    }
    let threads: std::collections::HashSet<u64> =
        parts.iter().map(|part| part.thread_id()).collect();
    assert_eq!(threads.len(), 6);
    assert_eq!(future.parent().map(Event::name), Some("futures: around"));
    let around = of(&trace, "futures: around");
    assert_eq!(
        future.parent().map(Event::start_ns),
        around.iter().map(|around| around.start_ns()).min(),
        "that of its first poll"
    );
    // The scopes inside it are not its self time, nor that of the polling scope.
    let inside: f64 = parts.iter().map(|part| part.cpu_ns()).sum();
    assert!(
        future.self_cpu_ns() >= 6.0 * 20_000.0 && future.self_cpu_ns() + inside <= future.cpu_ns()
    );
    for around in of(&trace, "futures: around") {
        assert!(around.self_cpu_ns() <= around.cpu_ns() && around.self_cpu_ns() >= 0.0);
    }
}

#[test(measuring)]
fn a_future_that_panics_or_is_dropped_is_marked_in_the_window() {
    let trace = run(|| {
        poll::run(poll::yields(2).measure_execution_time("ends: returned"));
        let mut dropped = Box::pin(poll::yields(9).measure_execution_time("ends: dropped"));
        let _ = poll::poll_once(dropped.as_mut());
        drop(dropped);
        drop(poll::yields(9).measure_execution_time("ends: never polled"));
        let panics = async {
            poll::yields(1).await;
            resume_unwind(Box::new("as asked"));
        };
        let mut panics = Box::pin(panics.measure_execution_time("ends: panicked"));
        let _ = poll::poll_once(panics.as_mut());
        let caught = catch_unwind(AssertUnwindSafe(|| {
            poll::poll_once(panics.as_mut()).is_ready()
        }));
        assert!(caught.is_err());
        // An executor may drop it much later.
        drop(panics);
    });
    let how = |name: &str| -> Vec<(bool, bool)> {
        let events = of(&trace, name);
        events
            .iter()
            .map(|event| (event.has_panicked(), event.is_dropped()))
            .collect()
    };
    assert_eq!(how("ends: returned"), [(false, false)]);
    assert_eq!(how("ends: dropped"), [(false, true)]);
    assert_eq!(how("ends: panicked"), [(true, false)]);
    assert_eq!(how("ends: never polled"), []);
}

#[test(measuring)]
fn a_future_across_windows_is_in_none_but_its_completed_scopes_are() {
    let (sender, seen) = mpsc::channel();
    let profile = Profile::builder()
        .schedule(Schedule::new().active(1))
        .on_trace_ready(move |trace: &Trace| {
            let names = trace
                .events()
                .filter(|event| event.name().starts_with("cut: "));
            let described = names.map(|event| {
                let parent = event.parent().map_or("", Event::name);
                format!("{} in `{parent}`", event.name())
            });
            sender.send(described.collect::<Vec<_>>())
        })
        .start()
        .expect("started");
    let long = async {
        for round in 0..3 {
            drop(scope!(format!("cut: part {round}")));
            poll::run(async { drop(scope!("cut: inside")) }.measure_execution_time("cut: short"));
            poll::yields(1).await;
        }
    };
    let mut long = Box::pin(long.measure_execution_time("cut: long"));
    for _ in 0..4 {
        let _ = poll::poll_once(long.as_mut());
        profile.step();
        assert!(profile.wait(PATIENCE));
    }
    stop(&profile);
    let seen: Vec<_> = seen.try_iter().take(4).collect();
    for (round, names) in seen.iter().enumerate().take(3) {
        let mut names = names.clone();
        names.sort();
        assert_eq!(names[0], "cut: inside in `cut: short`");
        assert_eq!(names[1], format!("cut: part {round} in ``"));
        assert!(names[2].starts_with("cut: short in "), "{}", names[2]);
        assert_eq!(names.len(), 3);
    }
    assert_eq!(seen[3], [""; 0], "it began before any window");
}

#[test(measuring)]
fn sessions_that_come_and_go_between_polls_harm_nothing() {
    let mut outside = Box::pin(measured("between: part", 1000));
    for round in 0..40 {
        let _ = poll::poll_once(outside.as_mut());
        let session = (round % 3 == 0).then(|| Profile::builder().start().expect("started"));
        let _ = poll::poll_once(outside.as_mut());
        let inside = async {
            poll::yields(1).await;
            drop(scope!("between: inside"));
        };
        poll::run(inside.measure_execution_time("between: whole"));
        if let Some(session) = session {
            stop(&session);
            let trace = session.trace().expect("a trace");
            let whole = of(&trace, "between: whole");
            assert_eq!(whole.len(), 1);
            assert_eq!(of(&trace, "futures: attribute").len(), 0);
            let inside = of(&trace, "between: inside");
            assert_eq!(inside[0].parent().map(Event::name), Some("between: whole"));
            let part = of(&trace, "between: part");
            assert_eq!(part.len(), 1);
            assert!(
                part[0].parent().is_none(),
                "its future began before the window"
            );
        }
    }
}

#[test(measuring)]
fn many_tasks_on_many_threads_are_all_there() {
    const TASKS: usize = 200;

    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .build()
        .expect("an executor");
    let trace = run(|| {
        executor.block_on(async {
            let tasks: Vec<_> = (0..TASKS)
                .map(|task| {
                    let task = async move {
                        for _ in 0..task % 4 {
                            drop(scope!("tasks: part"));
                            tokio::task::yield_now().await;
                        }
                        let inner = async { drop(scope!("tasks: innermost")) };
                        inner.measure_execution_time("tasks: inner").await;
                    };
                    tokio::spawn(task.measure_execution_time("tasks: task"))
                })
                .collect();
            for task in tasks {
                task.await.expect("no task panics");
            }
        });
    });
    assert_eq!(of(&trace, "tasks: task").len(), TASKS);
    assert_eq!(of(&trace, "tasks: inner").len(), TASKS);
    for (name, count, parent) in [
        ("tasks: part", TASKS / 4 * 6, "tasks: task"),
        ("tasks: innermost", TASKS, "tasks: inner"),
    ] {
        let events = of(&trace, name);
        assert_eq!(events.len(), count, "{name}");
        assert!(
            events
                .iter()
                .all(|event| event.parent().map(Event::name) == Some(parent)),
            "{name}"
        );
    }
}

#[test(on = driver())]
fn gpu_times_of_futures_come_with_their_windows() {
    let (_profiler, gpu, stream) = started();
    let ((), trace) = Profile::builder().run(|_| {
        let work = |ns: u64, polls: usize| {
            let (gpu, stream) = (&gpu, stream.clone());
            async move {
                for _ in 0..polls {
                    gpu.spin(&stream, ns);
                    poll::yields(1).await;
                }
            }
        };
        poll::run(
            work(10_000, 3)
                .measure_execution_time("device: returned")
                .stream(&stream),
        );
        let dropped = work(20_000, 9).measure_execution_time("device: dropped");
        let mut dropped = Box::pin(dropped.stream(&stream));
        let _ = poll::poll_once(dropped.as_mut());
        drop(dropped);
        stream.synchronize().expect("nothing failed");
    });
    let trace = trace.expect("a window");
    assert!(trace.truncation().is_complete(), "{:?}", trace.truncation());
    for (name, ns) in [
        ("device: returned", 30_000.0),
        ("device: dropped", 20_000.0),
    ] {
        let events = of(&trace, name);
        assert_eq!(events.len(), 1, "{name}");
        exact(events[0].gpu().expect("a GPU time").ns, ns);
    }
}
