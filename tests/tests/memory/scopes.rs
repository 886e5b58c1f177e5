//! With `profile_memory` and `ProfilerAllocator`, each scope has what its thread allocated, freed and held at most
//! inside of it, to the byte: nothing of what runs elsewhere, and nothing of the profiler's own.

use profiler_tests::stop;
use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use crate::ALLOCATOR;
use profiler_runtime::session::{MemoryUse, ProfileBuilder};
use profiler_runtime::{MeasureFuture, Profile, Schedule, Trace, scope};

const PATIENCE: Duration = Duration::from_secs(60);

fn builder() -> ProfileBuilder {
    Profile::builder().profile_memory(true)
}

fn bytes(size: usize) -> Vec<u8> {
    black_box(vec![1; size])
}

/// The memory of each scope of a name, in order.
fn uses(trace: &Trace, name: &str) -> Vec<MemoryUse> {
    let events = trace.events().filter(|event| event.name() == name);
    events
        .map(|event| event.memory().expect("it was asked for"))
        .collect()
}

/// Net, allocated, most at once.
fn host(trace: &Trace, name: &str) -> Vec<(i64, u64, u64)> {
    uses(trace, name)
        .iter()
        .map(|memory| (memory.host_net, memory.host_allocated, memory.host_peak))
        .collect()
}

/// Traces `f`, after a first run that makes all one-time allocations.
fn traced<T>(builder: impl Fn() -> ProfileBuilder, f: impl Fn() -> T) -> Arc<Trace> {
    let mut last = None;
    for _ in 0..2 {
        let (_, trace) = builder().run(|_| f());
        let trace = trace.expect("a window");
        last = Some(trace);
    }
    last.expect("two runs")
}

#[test(measuring)]
fn each_scope_has_its_own_memory_and_that_of_its_children() {
    let trace = traced(builder, || {
        let _outer = scope!("memory: outer");
        let kept = bytes(1000);
        {
            let _inner = scope!("memory: inner");
            drop(bytes(5000));
            let _innermost = scope!("memory: innermost");
            std::mem::forget(bytes(300));
        }
        drop(bytes(700));
        drop(kept);
        drop(scope!("memory: nothing"));
    });
    assert_eq!(host(&trace, "memory: innermost"), [(300, 300, 300)]);
    assert_eq!(host(&trace, "memory: inner"), [(300, 5300, 5000)]);
    assert_eq!(host(&trace, "memory: outer"), [(300, 7000, 6000)]);
    assert_eq!(host(&trace, "memory: nothing"), [(0, 0, 0)]);
}

#[test(measuring)]
fn a_summary_inside_a_scope_counts_no_memory_that_is_only_asked_for() {
    let trace = traced(builder, || {
        let _outer = scope!("memory: summary");
        let summary = profiler_runtime::summary();
        assert!(!summary.rows.is_empty());
    });
    let [(_, allocated, peak)] = host(&trace, "memory: summary")[..] else {
        panic!("it ran once");
    };
    // Before it takes its memory, a summary asks for half a MiB and more at once.
    assert!(peak <= allocated && allocated < 1 << 19, "{allocated}");
}

#[test(measuring)]
fn peaks_are_those_of_each_scope_however_they_nest() {
    let trace = traced(builder, || {
        let _outer = scope!("peaks: outer");
        drop(bytes(10_000));
        let held = bytes(100);
        for size in [2000, 50, 12_000] {
            let _inner = scope!("peaks: inner");
            drop(bytes(size));
        }
        drop(held);
        // Less than before the outer one had its most.
        drop(bytes(9000));
    });
    let inner = host(&trace, "peaks: inner");
    assert_eq!(inner, [(0, 2000, 2000), (0, 50, 50), (0, 12_000, 12_000)]);
    assert_eq!(host(&trace, "peaks: outer"), [(0, 33_150, 12_100)]);
}

#[test(measuring)]
fn a_scope_that_frees_older_memory_has_a_negative_net() {
    let before = bytes(4000);
    let ((), trace) = builder().run(|_| {
        let within = bytes(600);
        let _frees = scope!("older: frees");
        drop(before);
        drop(within);
        drop(bytes(10));
    });
    let trace = trace.expect("a window");
    assert_eq!(host(&trace, "older: frees"), [(-4600, 10, 0)]);
}

#[test(measuring)]
fn blocks_that_grow_and_shrink_are_counted_by_their_sizes() {
    let layout = |size| Layout::from_size_align(size, 16).expect("a layout");
    let trace = traced(builder, || {
        let _scope = scope!("resized");
        // SAFETY: each layout has a size, and each block is resized and freed with the layout that it has.
        unsafe {
            let block = ALLOCATOR.alloc(layout(100));
            let block = ALLOCATOR.realloc(block, layout(100), 5000);
            let block = ALLOCATOR.realloc(block, layout(5000), 40);
            black_box(block);
            ALLOCATOR.dealloc(block, layout(40));
            ALLOCATOR.dealloc(ALLOCATOR.alloc_zeroed(layout(64)), layout(64));
        }
    });
    let [(net, _, peak)] = host(&trace, "resized")[..] else {
        panic!("one scope");
    };
    assert_eq!((net, peak), (0, 5000));
}

#[test(measuring)]
fn threads_are_counted_each_for_itself() {
    let trace = traced(builder, || {
        let workers: Vec<_> = (1..=3_usize)
            .map(|worker| {
                thread::spawn(move || {
                    for _ in 0..200 {
                        let _scope = scope!(["one", "two", "three"][worker - 1]);
                        drop(bytes(1000 * worker));
                    }
                })
            })
            .collect();
        let moved = thread::spawn(|| {
            let _scope = scope!("threads: makes");
            bytes(77)
        });
        for worker in workers {
            worker.join().expect("it ends");
        }
        let moved = moved.join().expect("it ends");
        let _frees = scope!("threads: frees");
        drop(moved);
    });
    for (worker, name) in ["one", "two", "three"].into_iter().enumerate() {
        let size = 1000 * (worker as u64 + 1);
        assert_eq!(host(&trace, name), vec![(0, size, size); 200], "{name}");
    }
    assert_eq!(host(&trace, "threads: makes"), [(77, 77, 77)]);
    assert_eq!(host(&trace, "threads: frees"), [(-77, 0, 0)]);
}

#[test(measuring)]
fn memory_that_the_profiler_allocates_belongs_to_no_scope() {
    // All there is to ask for, in scopes of names that are new, on a thread that is new.
    let everything = || {
        builder()
            .record_shapes(true)
            .with_stack(true)
            .native_stack(true)
    };
    let beside = builder().start().expect("started");
    let ((), trace) = everything().run(|_| {
        let thread = thread::spawn(|| {
            let names: Vec<String> = (0..50).map(|index| format!("own: {index}")).collect();
            let _outer = scope!("own: outer");
            drop(scope!("own: shapes", shapes = [[4_usize, 5], [6, 7]]));
            for name in &names {
                drop(scope!(name));
            }
            drop(bytes(123));
        });
        thread.join().expect("it ends");
    });
    let trace = trace.expect("a window");
    drop(beside);
    assert_eq!(host(&trace, "own: outer"), [(0, 123, 123)]);
    for index in 0..50 {
        assert_eq!(host(&trace, &format!("own: {index}")), [(0, 0, 0)]);
    }
}

#[test(measuring)]
fn memory_that_the_profiler_frees_belongs_to_no_scope() {
    const SCOPES: usize = 10_000;

    let trace = traced(builder, || {
        let ((), inner) = Profile::builder()
            .run(|_| (0..SCOPES).for_each(|_| drop(scope!("given back: inside"))));
        let inner = inner.expect("a window");
        assert_eq!(inner.len(), SCOPES);
        let _drops = scope!("given back: drops a trace");
        drop(inner);
    });
    let [(net, allocated, _)] = host(&trace, "given back: drops a trace")[..] else {
        panic!("one scope");
    };
    // All but what stands in the `Arc` itself.
    let itself = i64::try_from(size_of::<Trace>() + 16).expect("it is small");
    assert!((-itself..=0).contains(&net), "{net} bytes");
    assert_eq!(allocated, 0);
}

#[test(measuring)]
fn a_measured_future_adds_no_memory_to_the_scope_around_it() {
    let trace = traced(
        || builder().with_stack(true),
        || {
            let _outer = scope!("futures: outer");
            let mut future = std::pin::pin!(async {}.measure_execution_time("futures: one"));
            let mut context = Context::from_waker(Waker::noop());
            assert!(future.as_mut().poll(&mut context).is_ready());
        },
    );
    assert_eq!(host(&trace, "futures: outer"), [(0, 0, 0)]);
    let mut events = trace.events();
    let future = events.find(|event| event.name() == "futures: one");
    assert_eq!(future.expect("it is there").memory(), None);
}

#[test(measuring)]
fn the_total_of_the_process_is_over_the_least() {
    let before = bytes(50_000_000);
    let ((), trace) = builder().run(|_| {
        drop(before);
        drop(scope!("least: freed"));
        let _held = bytes(3_000_000);
        drop(scope!("least: held"));
    });
    let trace = trace.expect("a window");
    let total = |name| uses(&trace, name)[0].host_total;
    let grown = total("least: held") - total("least: freed");
    assert!((2_900_000..3_100_000).contains(&grown), "{grown} bytes");
}

#[test(measuring)]
fn memory_is_counted_only_in_sessions_that_ask_for_it() {
    let work = || {
        let _scope = scope!("unasked");
        drop(bytes(10));
    };
    let memory_is_known = |trace: &Trace| -> Vec<bool> {
        let events = trace.events();
        events.map(|event| event.memory().is_some()).collect()
    };
    let ((), trace) = Profile::builder().run(|_| work());
    assert_eq!(memory_is_known(&trace.expect("a window")), [false]);
    // Not in a session beside one that asks, either.
    let asks = builder().start().expect("started");
    let ((), trace) = Profile::builder().run(|_| work());
    assert_eq!(memory_is_known(&trace.expect("a window")), [false]);
    stop(&asks);
    assert_eq!(
        host(&asks.trace().expect("a trace"), "unasked"),
        [(0, 10, 10)]
    );
}

#[test(measuring)]
fn the_total_of_the_process_does_not_drift_with_what_is_freed_between_windows() {
    const LARGE: usize = 50_000_000;

    let (sender, seen) = std::sync::mpsc::channel();
    let profile = builder()
        .schedule(Schedule::new().wait(1).active(1))
        .on_trace_ready(move |trace: &Trace| {
            let totals = uses(trace, "total")
                .into_iter()
                .map(|memory| memory.host_total);
            sender.send(totals.collect::<Vec<_>>())
        })
        .start()
        .expect("started");
    for _ in 0..5 {
        profile.step();
        let large = bytes(LARGE);
        drop(scope!("total"));
        profile.step();
        // Nothing is counted now.
        drop(large);
        assert!(profile.wait(PATIENCE));
    }
    stop(&profile);
    let seen: Vec<u64> = seen.try_iter().flatten().collect();
    assert_eq!(seen.len(), 5);
    for total in seen {
        let off = total.abs_diff(LARGE as u64);
        assert!(off < LARGE as u64 / 10, "{total} bytes");
    }
}
