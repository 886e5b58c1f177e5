//! Beyond the memory that cells may take, threads share the statistics of a name, which stay exact.
#![cfg(not(feature = "strip"))]

use std::future::poll_fn;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use profiler_runtime::{Handle, flush, measure_execution_time, scope, summary};
use profiler_tests::row;

const THREADS: u64 = 6;
const ROUNDS: u64 = 200;

#[measure_execution_time(name = "shared: leaf")]
fn leaf() {
    black_box(());
}

#[measure_execution_time(name = "shared: recursive")]
fn recursive(depth: u32) {
    leaf();
    if depth > 0 {
        recursive(depth - 1);
    }
}

#[measure_execution_time(name = "shared: outer")]
fn outer() {
    leaf();
    recursive(3);
}

#[measure_execution_time(name = "shared: panics")]
fn panics() {
    std::panic::resume_unwind(Box::new("expected"));
}

static LOGGED: AtomicU64 = AtomicU64::new(0);

#[measure_execution_time(name = "shared: sampled", log = |_, _, _| _ = LOGGED.fetch_add(1, Relaxed), log_every = 5)]
fn sampled() {
    leaf();
}

#[measure_execution_time(name = "shared: future")]
async fn pending_once() {
    let mut was_polled = false;
    poll_fn(|_| {
        leaf();
        if std::mem::replace(&mut was_polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

type BoxedFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Polls on a thread of its own.
fn poll_elsewhere(future: &mut BoxedFuture) -> bool {
    let poll = || {
        let mut context = Context::from_waker(Waker::noop());
        future.as_mut().poll(&mut context).is_ready()
    };
    thread::scope(|threads| threads.spawn(poll).join().expect("it does not panic"))
}

/// Calls on threads that are all alive at once, so that none uses the cells of another one again.
fn on_all_threads(run: impl Fn() + Sync) {
    let have_called = Barrier::new(usize::try_from(THREADS).expect("few"));
    thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                run();
                have_called.wait();
                (1..ROUNDS).for_each(|_| run());
            });
        }
    });
}

fn assert_sums_are_exact() {
    let calls = THREADS * ROUNDS;
    let (outer, recursive, leaf) = (
        row("shared: outer"),
        row("shared: recursive"),
        row("shared: leaf"),
    );
    assert_eq!((outer.calls, outer.open), (calls, 0));
    assert_eq!(
        (recursive.calls, recursive.primitive_calls, recursive.open),
        (4 * calls, calls, 0)
    );
    assert_eq!(
        (leaf.calls, leaf.open, leaf.out_of_order),
        (5 * calls, 0, 0)
    );
    let [outer, recursive, leaf] =
        [outer, recursive, leaf].map(|row| row.cpu.expect("calls have times"));
    let sum_of_self = outer.self_ns + recursive.self_ns + leaf.self_ns;
    let difference = (outer.total_ns - sum_of_self).abs();
    assert!(
        difference <= 1e-6 * outer.total_ns,
        "{} {sum_of_self}",
        outer.total_ns
    );
}

#[test(env = [("PROFILER_CELL_MEMORY", "4K")], measuring)]
fn threads_that_share_all_cells_count_exactly() {
    on_all_threads(outer);
    assert_sums_are_exact();
    let text = summary().to_string();
    assert!(text.contains("threads share their statistics"), "{text}");
    assert!(text.contains("PROFILER_CELL_MEMORY"), "{text}");
}

#[test(env = [("PROFILER_CELL_MEMORY", "28K")], measuring)]
fn threads_that_share_some_cells_count_exactly() {
    on_all_threads(outer);
    assert_sums_are_exact();
    assert!(summary().to_string().contains("PROFILER_CELL_MEMORY"));
}

#[test(env = [("PROFILER_CELL_MEMORY", "4K")], measuring)]
fn a_reader_of_shared_cells_sees_calls_that_never_fall() {
    let (has_read, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
    // The last calls of each thread come after a reading that has seen some.
    let start = Instant::now();
    let has_waited = || has_read.load(Relaxed) || start.elapsed() > Duration::from_secs(60);
    thread::scope(|threads| {
        threads.spawn(|| {
            on_all_threads(|| {
                outer();
                while !has_waited() {
                    thread::yield_now();
                }
            });
            has_ended.store(true, Relaxed);
        });
        let mut known = 0;
        while !has_ended.load(Relaxed) {
            let calls = summary().row("shared: leaf").map_or(0, |row| row.calls);
            assert!(calls >= known, "{calls} after {known}");
            known = calls;
            has_read.fetch_or(calls > 0, Relaxed);
        }
    });
    assert!(has_read.into_inner(), "nothing was read meanwhile");
    assert_sums_are_exact();
}

#[test(env = [("PROFILER_CELL_MEMORY", "4K")], measuring)]
fn unusual_ends_in_shared_cells_are_counted_as_in_others() {
    thread::spawn(|| {
        for _ in 0..3 {
            assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        }
        let first = scope!("shared: disordered");
        let inside = scope!("shared: disordered");
        drop(first);
        leaf();
        drop(inside);
        profiler_runtime::pause(leaf);
        let around = scope!("shared: around");
        let handle = Handle::current();
        let entered = handle.enter();
        leaf();
        drop(entered);
        drop(around);
        std::mem::forget(scope!("shared: leaked"));
    })
    .join()
    .expect("it does not panic");
    assert_eq!(
        (row("shared: panics").calls, row("shared: panics").panicked),
        (3, 3)
    );
    let disordered = row("shared: disordered");
    assert_eq!(
        (disordered.calls, disordered.out_of_order, disordered.open),
        (2, 2, 0)
    );
    assert_eq!(
        (row("shared: leaf").calls, row("shared: leaf").open),
        (2, 0)
    );
    assert_eq!(
        (row("shared: around").calls, row("shared: around").open),
        (1, 0)
    );
    assert_eq!(
        (row("shared: leaked").calls, row("shared: leaked").open),
        (0, 1)
    );
    // The cells are used again.
    thread::spawn(outer).join().expect("it does not panic");
    assert_eq!(
        (row("shared: leaf").calls, row("shared: leaf").open),
        (7, 0)
    );
}

#[test(env = [("PROFILER_CELL_MEMORY", "4K")], measuring)]
fn calls_in_shared_cells_are_logged_as_often_as_in_others() {
    on_all_threads(sampled);
    flush(Duration::from_secs(30));
    assert_eq!(row("shared: sampled").calls, THREADS * ROUNDS);
    let expected = THREADS * ROUNDS / 5;
    let logged = LOGGED.load(Relaxed);
    // The first call is one of them. At the end, each thread may have left up to four calls that no later one counted on.
    let missing = THREADS * 4 / 5;
    assert!(
        (expected - missing..=expected + 1).contains(&logged),
        "{logged}"
    );
}

#[test(env = [("PROFILER_CELL_MEMORY", "4K")], measuring)]
fn futures_in_shared_cells_are_counted_on_whichever_thread_they_are_polled() {
    let mut future: BoxedFuture = Box::pin(pending_once());
    assert!(!poll_elsewhere(&mut future));
    assert_eq!(
        (row("shared: future").calls, row("shared: future").open),
        (0, 1)
    );
    assert!(poll_elsewhere(&mut future));
    let mut dropped: BoxedFuture = Box::pin(pending_once());
    assert!(!poll_elsewhere(&mut dropped));
    thread::spawn(move || drop(dropped))
        .join()
        .expect("it does not panic");
    let row_of_both = row("shared: future");
    assert_eq!(
        (row_of_both.calls, row_of_both.open, row_of_both.futures),
        (2, 0, 2)
    );
    assert_eq!(row_of_both.dropped_futures, 1);
    assert_eq!(row("shared: leaf").calls, 3);
}

#[cfg(target_os = "linux")]
#[test(env = [("PROFILER_CELL_MEMORY", "4K")], measuring)]
fn a_guard_that_outlives_its_thread_is_counted_in_a_shared_cell() {
    use std::cell::RefCell;

    thread_local! {
        static HELD: RefCell<Vec<profiler_runtime::__private::Scope>> = const { RefCell::new(Vec::new()) };
    }
    thread::spawn(|| {
        HELD.with_borrow_mut(|held| held.push(scope!("shared: held")));
        leaf();
    })
    .join()
    .expect("it does not panic");
    let held = row("shared: held");
    assert_eq!((held.calls, held.open), (1, 0));
    assert_eq!(row("shared: leaf").calls, 1);
}
