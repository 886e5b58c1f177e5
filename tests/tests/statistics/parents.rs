//! Parents on other threads: callers, self times and recursion are those of the program, whatever threads run it.

#![cfg_attr(
    feature = "strip",
    allow(
        unused_variables,
        dead_code,
        clippy::unused_self,
        reason = "only arguments of the attribute use some things"
    )
)]

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use profiler_runtime::session::Event;
use profiler_runtime::{Handle, MeasureFuture, Profile, Trace, init, measure, measured};
use profiler_tests::{measuring, poll, row, work};

/// The error of conversions of ticks to nanoseconds.
const TOLERANCE: f64 = 0.01;

fn run(f: impl FnOnce()) -> Arc<Trace> {
    let ((), trace) = Profile::builder().with_stack(true).run(|_| f());
    let trace = trace.expect("a window");
    assert!(trace.truncation().is_complete(), "{:?}", trace.truncation());
    trace
}

fn of<'t>(trace: &'t Trace, name: &str) -> Vec<Event<'t>> {
    let events = trace.events();
    events.filter(|event| event.name() == name).collect()
}

fn only<'t>(trace: &'t Trace, name: &str) -> Event<'t> {
    let events = of(trace, name);
    assert_eq!(events.len(), 1, "{name}");
    events[0]
}

fn stack(event: Event<'_>) -> Vec<&str> {
    event.stack().map(|frame| frame.name).collect()
}

/// Returns the total and the self time of a name, in nanoseconds.
fn total_and_self(name: &str) -> (f64, f64) {
    let times = row(name).cpu.expect("CPU times");
    (times.total_ns, times.self_ns)
}

#[measured(name = "parents: attribute", parent = handle)]
fn attribute(handle: &Handle) {
    work(50);
}

#[measured(name = "parents: plain")]
fn plain() {
    work(50);
}

#[measured(name = "parents: task", parent = handle)]
async fn task(handle: Handle) {
    poll::yields(2).await;
    plain();
}

#[test(measuring)]
fn each_way_to_name_a_parent_makes_it_the_caller() {
    let trace = run(|| {
        measure!("parents: outer", {
            let handle = Handle::current();
            thread::scope(|threads| {
                threads.spawn(|| measure!("parents: section", parent = handle, { work(50) }));
                threads.spawn(|| attribute(&handle));
                threads.spawn(|| {
                    let _parent = handle.enter();
                    plain();
                });
                let its_own = handle.clone();
                threads.spawn(|| poll::run(task(its_own)));
                threads.spawn(|| {
                    let future = async { work(50) };
                    let future = future.measure_execution_time("parents: future");
                    poll::run(future.parent(&handle));
                });
            });
        });
    });
    for name in [
        "parents: section",
        "parents: attribute",
        "parents: task",
        "parents: future",
    ] {
        let event = only(&trace, name);
        let parent = event.parent().map(Event::name);
        assert_eq!(parent, Some("parents: outer"), "{name}");
        assert_eq!(stack(event), ["parents: outer"], "{name}");
    }
    let mut callers: Vec<_> = of(&trace, "parents: plain")
        .iter()
        .map(|event| stack(*event).join(" < "))
        .collect();
    callers.sort_unstable();
    assert_eq!(
        callers,
        ["parents: outer", "parents: task < parents: outer"]
    );
}

#[test]
fn waiting_for_other_threads_is_no_self_time() {
    let _guard = init();
    let (mut waited, mut longest) = (Duration::ZERO, Duration::ZERO);
    let all = Barrier::new(4);
    let trace = measuring().then(|| {
        run(|| {
            measure!("parents: waits", {
                let handle = Handle::current();
                let start = Instant::now();
                thread::scope(|threads| {
                    let workers = [(); 4].map(|()| {
                        threads.spawn(|| {
                            measure!("parents: chunk", parent = &handle, {
                                let start = Instant::now();
                                all.wait();
                                work(2_000);
                                start.elapsed()
                            })
                        })
                    });
                    let workers = workers.map(|worker| worker.join().expect("it does not panic"));
                    longest = workers.into_iter().max().expect("four");
                });
                waited = start.elapsed();
            });
        })
    });
    let Some(trace) = trace else { return };
    let event = only(&trace, "parents: waits");
    let ns = |duration: Duration| duration.as_nanos() as f64;
    for (total, own) in [
        total_and_self("parents: waits"),
        (event.cpu_ns(), event.self_cpu_ns()),
    ] {
        let most = total - ns(longest) * (1.0 - TOLERANCE);
        let least = total - ns(waited) * (1.0 + TOLERANCE);
        assert!(own <= most && own >= least, "{least} {own} {most}");
    }
    let (_, own) = total_and_self("parents: chunk");
    assert!(own >= 4.0 * 2_000_000.0 * (1.0 - TOLERANCE));
}

#[test(measuring)]
fn recursion_across_threads_counts_once() {
    #[measured(name = "parents: recursive")]
    fn recursive(depth: u32) {
        if depth == 0 {
            return work(20);
        }
        let handle = Handle::current();
        thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    let _parent = handle.enter();
                    recursive(depth - 1);
                });
            }
        });
    }

    let trace = run(|| recursive(3));
    let row = row("parents: recursive");
    assert_eq!((row.calls, row.primitive_calls, row.open), (15, 1, 0));
    let averages = trace.key_averages();
    let average = averages
        .rows
        .iter()
        .find(|row| row.name == "parents: recursive");
    let average = average.expect("a row");
    assert_eq!((average.calls, average.primitive_calls), (15, 1));
    let callers = averages.callers();
    let edges: Vec<_> = callers
        .edges
        .iter()
        .map(|edge| (edge.caller.as_deref(), edge.calls, edge.primitive_calls))
        .collect();
    let own = Some("parents: recursive");
    assert!(edges.contains(&(None, 1, 1)), "{edges:?}");
    let inner: Vec<_> = edges.iter().filter(|edge| edge.0 == own).collect();
    assert_eq!(inner.iter().map(|edge| edge.1).sum::<u64>(), 14);
}

#[test]
fn a_name_that_calls_itself_through_another_thread_is_recursive() {
    #[measured(name = "parents: visit")]
    fn visit(depth: u32) {
        work(20);
        if depth > 0 {
            let handle = Handle::current();
            let child = move || measure!("parents: child", parent = handle, { visit(depth - 1) });
            thread::spawn(child).join().expect("it does not panic");
        }
    }

    visit(3);
    if measuring() {
        let (visits, children) = (row("parents: visit"), row("parents: child"));
        assert_eq!((visits.calls, visits.primitive_calls), (4, 1));
        assert_eq!((children.calls, children.primitive_calls), (3, 1));
        assert_eq!((visits.open, children.open), (0, 0));
    }
}

#[test]
fn a_handle_may_be_used_by_any_thread_at_any_time() {
    let handle = measure!("parents: ended", { Handle::current() });
    assert_eq!(handle.is_none(), !measuring());
    let threads = [(); 8].map(|()| {
        let handle = handle.clone();
        thread::spawn(move || {
            for _ in 0..100 {
                let _parent = handle.enter();
                plain();
            }
        })
    });
    for thread in threads {
        thread.join().expect("it does not panic");
    }
    if measuring() {
        assert_eq!(row("parents: plain").calls, 800);
        let (total, own) = total_and_self("parents: ended");
        assert!(own <= total);
    }
}

#[test(measuring)]
fn rayon_calls_are_those_of_the_function_that_made_them() {
    use rayon::prelude::*;

    #[measured(name = "parents: squares")]
    fn squares(numbers: &mut [u64]) {
        let parent = Handle::current();
        numbers.par_iter_mut().for_each(|number| {
            let _parent = parent.enter();
            measure!("parents: square", {
                work(20);
                *number *= *number;
            });
        });
    }

    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
    let pool = pool.expect("threads");
    let mut numbers: Vec<u64> = (0..200).collect();
    // The caller is a thread of the pool, which takes its share of the work.
    let trace = run(|| pool.install(|| squares(&mut numbers)));
    assert_eq!(numbers[14], 196);
    let of_squares = of(&trace, "parents: square");
    assert_eq!(of_squares.len(), 200);
    let caller = |event: &Event<'_>| event.parent().map(Event::name) == Some("parents: squares");
    assert!(of_squares.iter().all(caller));
    assert_eq!(row("parents: square").primitive_calls, 200);
    // Three threads at most: their self times are within the time of the function.
    let (total, own) = total_and_self("parents: squares");
    let (_, inner) = total_and_self("parents: square");
    assert!(own + inner <= 3.0 * total * (1.0 + TOLERANCE));
    let event = only(&trace, "parents: squares");
    assert!(event.self_cpu_ns() <= event.cpu_ns());
}

#[test]
fn a_parent_is_evaluated_once_and_only_borrowed() {
    struct Work {
        parent: Handle,
    }

    impl Work {
        #[measured(name = "parents: method", parent = self.parent)]
        fn method(&self) {}
    }

    let shared = Arc::new(Handle::current());
    let work = Work {
        parent: Handle::none(),
    };
    for _ in 0..2 {
        work.method();
        measure!("parents: shared", parent = shared, {});
        measure!(format!("parents: {}", "dynamic"), parent = &&*shared, {});
    }
    let mut evaluated = 0;
    measure!(
        "parents: once",
        parent = {
            evaluated += 1;
            Handle::none()
        },
        {}
    );
    assert_eq!(evaluated, i32::from(measuring()));
    drop(shared);
}
