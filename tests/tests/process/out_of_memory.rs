//! If there is no memory for the profiler, measurements are lost and counted; the program continues.
#![cfg(not(feature = "strip"))]

use std::thread;
use std::time::{Duration, Instant};

use profiler_runtime::__private::cells_made;
use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::report::{DropReason, SpanLoss};
use profiler_runtime::session::Truncation;
use profiler_runtime::{Profile, ProfilerLayer, flush, measure_execution_time, scope, summary};
use profiler_tests::allocator::{refusals, refusing};
use profiler_tests::gpu;
use profiler_tests::gpu::{driver, started};
use profiler_tests::row;
use tracing_subscriber::layer::SubscriberExt;

/// Below what a cell takes, and above all that a test takes meanwhile.
const CELLS: usize = 570;
/// The cells that are allocated at once.
const BATCH: usize = 16;
/// Below a ring's size.
const RINGS: usize = 32 << 10;
/// The size of a ring of GPU scopes, which holds their addresses.
const GPU_RINGS: usize = 16 << 10;

/// Has this thread take the cell that is free, if one is, and all that are left of the last batch.
fn use_up_cells(names: &str) {
    let mut number = 0;
    while number == 0 || !cells_made().is_multiple_of(BATCH) {
        let name = format!("memory: {names} {number}");
        drop(scope!(&name));
        number += 1;
    }
}

#[test(measuring)]
fn calls_without_memory_for_their_statistics_are_counted() {
    // The profiler's one-time allocations.
    drop(scope!("memory: first"));
    use_up_cells("first");
    let refused = refusing(CELLS, || {
        for _ in 0..5 {
            let _outer = scope!("memory: refused");
            drop(scope!("memory: inside"));
        }
    });
    assert!(refused > 0, "it asks for more");
    assert_eq!(summary().unmeasured, 10);
    assert!(summary().to_string().contains("10 calls not measured"));
    // There is memory again, on the same thread.
    for _ in 0..3 {
        drop(scope!("memory: refused"));
    }
    assert_eq!(row("memory: refused").calls, 3);
    // A name that has its buckets counts all calls, without a cell too.
    thread::spawn(|| drop(scope!("memory: refused")))
        .join()
        .expect("it ends");
    let (begin, is_to_begin) = std::sync::mpsc::channel();
    let thread = thread::spawn(move || {
        let _ = is_to_begin.recv();
        drop(scope!("memory: refused"));
    });
    use_up_cells("second");
    let refused = refusing(CELLS, || {
        begin.send(()).expect("it waits");
        thread.join().expect("it ends");
    });
    assert!(refused > 0, "it asks for more");
    assert_eq!(row("memory: refused").calls, 5);
    assert_eq!(summary().unmeasured, 10);
}

#[test(measuring)]
fn calls_of_new_names_without_memory_for_these_are_counted() {
    // The profiler's one-time allocations.
    drop(scope!("memory: first"));
    let texts: Vec<String> = (0..200).map(|number| format!("memory: {number}")).collect();
    let refused = refusing(CELLS, || {
        for text in &texts {
            drop(scope!(text));
        }
        drop(scope!("memory: declared"));
    });
    assert!(refused > 0, "it asks for more");
    assert_eq!(summary().unmeasured, 201);
    for text in &texts {
        drop(scope!(text));
    }
    drop(scope!("memory: declared"));
    assert_eq!(
        (row("memory: 199").calls, row("memory: declared").calls),
        (1, 1)
    );
    assert_eq!(summary().unmeasured, 201);
}

#[test(measuring)]
fn a_span_that_closes_without_memory_is_counted() {
    let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new());
    tracing::subscriber::with_default(subscriber, || {
        let entered = || {
            let span = tracing::info_span!("closes");
            (0..3).for_each(|_| span.in_scope(|| ()));
            span
        };
        drop(entered());
        let last = entered();
        let refused = refusing(CELLS, || drop(last));
        assert!(refused > 0, "it asks for more");
    });
    let row = row("process::out_of_memory::closes");
    assert_eq!((row.calls, row.reentered_spans), (6, 2));
}

#[test(measuring)]
fn a_thread_that_ends_without_memory_loses_nothing() {
    let (end, is_to_end) = std::sync::mpsc::channel::<()>();
    let (began, has_begun) = std::sync::mpsc::channel();
    let thread = thread::spawn(move || {
        drop(scope!("memory: ends"));
        began.send(()).expect("it is waited for");
        let _ = is_to_end.recv();
    });
    has_begun.recv().expect("it has begun");
    let refused = refusing(CELLS, || {
        drop(end);
        thread.join().expect("it ends");
    });
    assert!(refused > 0, "it asks for more");
    assert_eq!(row("memory: ends").calls, 1);
    assert_eq!(summary().unmeasured, 0);
}

#[measure_execution_time(name = "memory: logged", log = |_, _, _| ())]
fn logged() {}

#[test(measuring)]
fn log_entries_without_memory_for_their_ring_are_dropped_under_a_reason() {
    let refused = refusing(RINGS, || (0..7).for_each(|_| logged()));
    assert!(refused > 0, "it asks for more");
    assert_eq!(summary().dropped, [(DropReason::NoMemory, 7)]);
    logged();
    let report = flush(Duration::from_secs(60));
    assert_eq!((report.delivered, report.dropped, report.left), (1, 7, 0));
    assert_eq!(row("memory: logged").calls, 8);
}

#[test(on = driver())]
fn gpu_times_without_memory_for_their_ring_are_lost_under_a_reason() {
    let (_profiler, gpu, stream) = started();
    let run = |calls: u64| {
        for _ in 0..calls {
            let _scope = scope!("memory: on the GPU", stream = &stream);
            gpu.spin(&stream, 10_000);
        }
    };
    // Everything that is created once for all threads exists, and this thread has no ring.
    thread::scope(|scope| {
        scope.spawn(|| run(1));
    });
    let refused = refusing(GPU_RINGS, || run(3));
    assert!(refused > 0, "it asks for more");
    run(2);
    stream.synchronize().expect("nothing failed");
    gpu::settle();
    assert_eq!(gpu::lost(CudaLoss::NoMemory), 3);
    assert_eq!(gpu::cuda("memory: on the GPU").calls, 3);
    assert_eq!(row("memory: on the GPU").calls, 6);
}

/// Waits until the profiler's threads have asked for more so often since `before`.
fn until_refused(times: usize, before: usize) {
    let end = Instant::now() + Duration::from_secs(60);
    while refusals() - before < times {
        assert!(Instant::now() < end, "nobody asks");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the scopes in a window, and what is missing for lack of memory.
fn account(trace: &profiler_runtime::Trace) -> (usize, Truncation) {
    let named = |name: &str| name.starts_with("memory: window");
    let held = trace.events().filter(|event| named(event.name()));
    (held.count(), trace.truncation())
}

#[test(measuring)]
fn windows_without_memory_say_what_is_missing() {
    const SCOPES: usize = 5_000;

    // No ring for the thread.
    let ((), trace) = Profile::builder().run(|_| {
        let refused = refusing(RINGS, || {
            (0..9).for_each(|_| drop(scope!("memory: window")));
        });
        assert!(refused > 0, "it asks for more");
        drop(scope!("memory: window"));
    });
    let (held, missing) = account(&trace.expect("a window"));
    assert_eq!((held, missing.no_memory, missing.ring_full), (1, 9, 0));

    // No buffer for the window, which has some scopes by then. Each is in the window or counted.
    let ((), trace) = Profile::builder().run(|_| {
        let before = refusals();
        let refused = refusing(RINGS, || {
            for _ in 0..SCOPES {
                drop(scope!("memory: window"));
            }
            // The sorter's own buffer asks once for each hundred scopes, the window once for each scope that it has no
            // room for.
            until_refused(SCOPES / 4, before);
        });
        assert!(refused > 0, "it asks for more");
    });
    let (held, missing) = account(&trace.expect("a window"));
    let all = held as u64 + missing.no_memory + missing.ring_full;
    assert!(missing.no_memory > 0, "{missing:?}");
    assert_eq!(all, SCOPES as u64, "{missing:?}");
}

/// Lets this process take at most so many bytes more, or as many as it likes.
#[cfg(target_os = "linux")]
fn limit_address_space(more: Option<u64>) {
    use rlimit::{Resource, getrlimit, setrlimit};

    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = pages.split(' ').next().and_then(|pages| pages.parse().ok());
    let now: u64 = pages.map_or(0, |pages: u64| pages * 4096);
    let (_, hard) = getrlimit(Resource::AS).expect("it is known");
    let limit = more.map_or(hard, |more| hard.min(now + more));
    setrlimit(Resource::AS, limit, hard).expect("it is below the other limit");
}

// In one arena: others have their address space already.
#[cfg(target_os = "linux")]
#[test(measuring, env = [("MALLOC_ARENA_MAX", "1"), ("PROFILER_CALLERS", "1")])]
fn a_summary_without_memory_has_a_note_in_place_of_its_rows() {
    const NAMES: usize = 500;
    const STEP: usize = 256 << 10;

    for number in 0..NAMES {
        let _outer = scope!(&format!("memory: row {number}"));
        drop(scope!("memory: inside"));
    }
    let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new());
    tracing::subscriber::with_default(subscriber, || drop(tracing::info_span!("never entered")));
    let known = summary();
    assert_eq!(known.lost_spans, [(SpanLoss::NeverEntered, 1)]);
    let mut refused = 0;
    for more in (0..).step_by(STEP) {
        limit_address_space(Some(more));
        let summary = summary();
        let texts = summary.to_string().len() + summary.to_json().len() + summary.to_csv().len();
        limit_address_space(None);
        assert!(texts > 0);
        if summary.rows.len() == NAMES + 1 {
            break;
        }
        assert_eq!(summary.rows.len(), 0, "all or none");
        let text = summary.to_string();
        assert!(text.contains("no rows: the system refused the "), "{text}");
        assert!(!text.contains("nothing was measured"), "{text}");
        assert_eq!(summary.lost_spans, known.lost_spans);
        assert!(summary.wall_ns >= known.wall_ns);
        assert!((summary.percentile_error - known.percentile_error).abs() < f64::EPSILON);
        refused += 1;
    }
    assert!(refused > 0, "it asks for more");
    assert_eq!(summary().rows.len(), NAMES + 1);
}
