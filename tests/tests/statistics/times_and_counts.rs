//! Every call is counted, on whatever thread; self time is the total without the children's totals.

use std::thread;

use profiler_runtime::{measure_execution_time, scope};
use profiler_tests::CpuTimes;
use profiler_tests::{if_measuring, measuring, row, work};

#[measure_execution_time(name = "exact: inner")]
fn inner() {
    work(200);
}

#[measure_execution_time(name = "exact: outer")]
fn outer() {
    work(300);
    inner();
    inner();
}

#[test]
fn self_time_is_the_total_without_the_children() {
    for _ in 0..20 {
        outer();
    }
    let (outer, inner) = (row("exact: outer"), row("exact: inner"));
    assert_eq!(
        (outer.calls, inner.calls),
        (if_measuring(20), if_measuring(40))
    );
    let difference = outer.cpu().total_ns - inner.cpu().total_ns - outer.cpu().self_ns;
    assert!(difference.abs() < 1.0, "{difference} ns unaccounted for");
    assert!((inner.cpu().total_ns - inner.cpu().self_ns).abs() < 1.0);
    if measuring() {
        assert!(outer.cpu().self_ns >= 20.0 * 300e3 && inner.cpu().self_ns >= 40.0 * 200e3);
        assert!(
            outer.cpu().min_ns >= 700e3
                && outer.cpu().min_ns <= outer.cpu().p50_ns
                && outer.cpu().p50_ns <= outer.cpu().p99_ns
        );
        assert!(
            outer.cpu().p99_ns <= outer.cpu().max_ns && outer.cpu().mean_ns <= outer.cpu().max_ns
        );
    }
}

#[measure_execution_time(name = "exact: recursive")]
fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        n
    } else {
        fibonacci(n - 1) + fibonacci(n - 2)
    }
}

#[test]
fn a_recursive_frame_counts_once_in_the_total() {
    let start = std::time::Instant::now();
    assert_eq!(fibonacci(15), 610);
    let elapsed = start.elapsed().as_nanos() as f64;
    let row = row("exact: recursive");
    assert_eq!(
        (row.calls, row.primitive_calls),
        (if_measuring(1973), if_measuring(1))
    );
    assert!(
        row.cpu().total_ns <= elapsed,
        "{} of {elapsed} ns",
        row.cpu().total_ns
    );
    assert!(
        (row.cpu().total_ns - row.cpu().self_ns).abs() < 1.0,
        "all of it is its own"
    );
}

#[test]
fn a_live_thread_is_read_while_it_works() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let worker = thread::spawn(move || {
        for _ in 0..100 {
            let _scope = scope!("exact: live");
        }
        ready.send(()).unwrap();
        receiver.recv().unwrap_err();
    });
    is_ready.recv().unwrap();
    assert_eq!(row("exact: live").calls, if_measuring(100));
    drop(sender);
    worker.join().unwrap();
    assert_eq!(row("exact: live").calls, if_measuring(100));
}

#[test]
fn guards_dropped_out_of_order_keep_their_times() {
    let older = scope!("exact: older");
    let younger = scope!("exact: younger");
    work(100);
    drop(older);
    work(100);
    drop(younger);
    let _after = scope!("exact: after");
    let (older, younger) = (row("exact: older"), row("exact: younger"));
    assert_eq!(
        (older.calls, younger.calls),
        (if_measuring(1), if_measuring(1))
    );
    assert_eq!(older.out_of_order, if_measuring(1), "and it is said");
    if measuring() {
        assert!(older.cpu().total_ns >= 100e3 && younger.cpu().total_ns >= 200e3);
    }
}

#[test]
fn guards_of_one_name_that_overlap_count_no_instant_twice() {
    let elapsed = std::time::Instant::now();
    for _ in 0..10 {
        let older = scope!("exact: overlapping");
        let younger = scope!("exact: overlapping");
        work(200);
        drop(older);
        drop(younger);
    }
    let elapsed = elapsed.elapsed().as_nanos() as f64;
    let row = row("exact: overlapping");
    assert_eq!(
        (row.calls, row.primitive_calls),
        (if_measuring(20), if_measuring(10))
    );
    if measuring() {
        let total = row.cpu().total_ns;
        assert!(
            total >= 10.0 * 200e3 && total <= elapsed,
            "{total} {elapsed}"
        );
    }
}

#[test]
fn a_forgotten_guard_stays_open_and_disturbs_nobody() {
    {
        let _outer = scope!("exact: around forgotten");
        std::mem::forget(scope!("exact: forgotten"));
    }
    {
        let _next = scope!("exact: after forgotten");
        work(50);
    }
    assert_eq!(row("exact: around forgotten").calls, if_measuring(1));
    let next = row("exact: after forgotten");
    assert_eq!(next.calls, if_measuring(1));
    assert!((next.cpu().total_ns - next.cpu().self_ns).abs() < 1.0);
    let forgotten = row("exact: forgotten");
    assert_eq!(
        (forgotten.calls, forgotten.open),
        (0, if_measuring(1)),
        "it has not ended"
    );
}

#[test]
fn calls_after_a_forgotten_guard_of_the_same_name_are_no_recursion() {
    let call = || {
        let scope = scope!("exact: forgotten once");
        work(100);
        scope
    };
    {
        let _outer = scope!("exact: around forgotten once");
        std::mem::forget(call());
    }
    {
        let _other = scope!("exact: around the next");
        for _ in 0..5 {
            drop(call());
        }
    }
    let row = row("exact: forgotten once");
    assert_eq!(
        (row.calls, row.primitive_calls),
        (if_measuring(5), if_measuring(5))
    );
    assert!(!measuring() || row.cpu().total_ns >= 500e3);
}

#[test]
fn any_number_of_forgotten_guards_leaves_their_names_alone() {
    let call = |name: &str| {
        let scope = scope!(name);
        work(20);
        scope
    };
    for name in ["exact: left 1", "exact: left 2", "exact: left 3"] {
        let _outer = scope!("exact: around left");
        std::mem::forget(call(name));
    }
    let _outer = scope!("exact: around calls");
    for name in ["exact: left 1", "exact: left 2", "exact: left 3"] {
        (0..3).for_each(|_| drop(call(name)));
        let row = row(name);
        assert_eq!(
            (row.calls, row.primitive_calls),
            (if_measuring(3), if_measuring(3)),
            "{name}"
        );
    }
}

#[test]
fn calls_too_short_for_the_clock_are_marked() {
    for _ in 0..1000 {
        let _scope = scope!("exact: nothing");
    }
    for _ in 0..10 {
        let _scope = scope!("exact: something");
        work(50);
    }
    let nothing = row("exact: nothing");
    // Without optimizations, and on a clock with long ticks, a call may take long enough to be timed.
    if nothing.cpu.is_none_or(|times| times.p50_ns < 20.0) {
        assert_eq!(nothing.too_short, measuring());
    }
    assert!(!row("exact: something").too_short);
}

#[test]
fn panics_are_counted_and_flagged() {
    for number in 0..6 {
        let result = std::panic::catch_unwind(|| {
            let _scope = scope!("exact: panics");
            assert!(number % 3 != 0, "as asked");
        });
        assert_eq!(result.is_err(), number % 3 == 0);
    }
    let row = row("exact: panics");
    assert_eq!(
        (row.calls, row.panicked),
        (if_measuring(6), if_measuring(2))
    );
}

#[test]
fn what_runs_while_a_panic_passes_is_not_flagged() {
    struct Cleanup;
    impl Drop for Cleanup {
        fn drop(&mut self) {
            let _scope = scope!("exact: cleanup");
            work(20);
        }
    }
    let result = std::panic::catch_unwind(|| {
        let _scope = scope!("exact: around cleanup");
        let _cleanup = Cleanup;
        panic!("as asked");
    });
    assert!(result.is_err());
    assert_eq!(
        (row("exact: cleanup").calls, row("exact: cleanup").panicked),
        (if_measuring(1), 0)
    );
    assert_eq!(row("exact: around cleanup").panicked, if_measuring(1));
}
