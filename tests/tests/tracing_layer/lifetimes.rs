//! Spans that are entered twice, elsewhere, never, or in another order than they are exited.

use std::cell::OnceCell;
use std::thread;

use profiler_runtime::report::SpanLoss;
use profiler_runtime::{ProfilerLayer, scope, set_enabled};
use profiler_tests::{CpuTimes, if_measuring, measuring, row, work};
use tracing::{Span, Subscriber, info_span};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry;

use crate::support::{all_lost, install, lost};

const NAME: &str = "tracing_layer::lifetimes::span";

/// A layer that sees all spans.
struct Nothing;

impl<S: Subscriber> Layer<S> for Nothing {}

fn span() -> Span {
    info_span!("span")
}

#[test]
fn a_span_that_is_entered_several_times_is_one_call_with_several_times() {
    install();
    let span = span();
    for _ in 0..3 {
        span.in_scope(|| work(100));
    }
    assert_eq!(row(NAME).calls, if_measuring(1), "also while it is open");
    drop(span);
    let row = row(NAME);
    assert_eq!(
        (row.calls, row.cpu().calls),
        (if_measuring(1), if_measuring(3))
    );
    assert_eq!(
        (row.primitive_calls, row.futures),
        (if_measuring(1), if_measuring(1))
    );
    if measuring() {
        assert!(row.cpu().total_ns >= 300_000.0);
        assert!((row.polled_ns - row.cpu().total_ns).abs() < 1.0);
        assert!(row.cpu().mean_ns <= row.cpu().max_ns);
    }
    let table = profiler_runtime::summary().to_string();
    let note = format!("{NAME}: 2 times of spans that had been entered before");
    assert_eq!(table.contains(&note), measuring(), "{table}");
    assert_eq!(all_lost(), 0);
}

#[test]
fn a_span_that_is_entered_inside_itself_is_one_time() {
    install();
    let span = span();
    span.in_scope(|| span.in_scope(|| span.in_scope(|| work(50))));
    drop(span);
    let row = row(NAME);
    assert_eq!(
        (row.calls, row.primitive_calls),
        (if_measuring(1), if_measuring(1))
    );
    assert_eq!((row.cpu().calls, row.open), (if_measuring(1), 0));
    assert_eq!(all_lost(), 0);
}

#[test]
fn a_span_that_is_entered_on_several_threads_is_one_call() {
    install();
    let span = span();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| span.in_scope(|| work(100)));
        }
    });
    thread::spawn(move || drop(span))
        .join()
        .expect("it closes elsewhere");
    let row = row(NAME);
    assert_eq!(
        (row.calls, row.cpu().calls, row.open),
        (if_measuring(1), if_measuring(4), 0)
    );
    assert_eq!(all_lost(), 0);
}

#[test]
fn a_span_that_is_never_entered_is_no_call() {
    install();
    drop(span());
    let kept = span();
    drop(kept.clone());
    assert_eq!(lost(SpanLoss::NeverEntered), if_measuring(1));
    drop(kept);
    assert_eq!(
        (row(NAME).calls, lost(SpanLoss::NeverEntered)),
        (0, if_measuring(2))
    );
    let table = profiler_runtime::summary().to_string();
    let note = "2 spans not timed: never entered";
    assert_eq!(
        table.contains(note),
        measuring(),
        "there are no rows: {table}"
    );
    span().in_scope(|| ());
    let table = profiler_runtime::summary().to_string();
    assert_eq!(table.contains(note), measuring(), "{table}");
}

#[test]
fn spans_that_are_exited_out_of_order_are_counted_with_their_times() {
    install();
    let (first, second) = (span(), info_span!("second"));
    let first = first.entered();
    let second = second.entered();
    work(50);
    drop(first);
    work(50);
    drop(second);
    let (first, second) = (row(NAME), row("tracing_layer::lifetimes::second"));
    assert_eq!(
        (first.calls, second.calls),
        (if_measuring(1), if_measuring(1))
    );
    assert_eq!((first.open, second.open), (0, 0));
    assert_eq!(first.out_of_order + second.out_of_order, if_measuring(2));
    if measuring() {
        assert!(second.cpu().total_ns >= 100_000.0);
    }
    // The thread's scopes are as before.
    drop(scope!("lifetimes: next"));
    assert_eq!(row("lifetimes: next").out_of_order, 0);
    assert_eq!(all_lost(), 0);
}

#[test]
fn a_guard_that_is_forgotten_is_counted_and_leaves_nothing() {
    install();
    thread::spawn(|| {
        for _ in 0..10_000 {
            let around = scope!("lifetimes: around");
            let span = span();
            std::mem::forget(span.enter());
            drop(span);
            drop(around);
        }
    })
    .join()
    .expect("it ends");
    assert_eq!(lost(SpanLoss::NeverExited), if_measuring(10_000));
    assert_eq!(row(NAME).calls, 0);
    assert_eq!(row("lifetimes: around").calls, if_measuring(10_000));
}

#[test]
fn turning_measuring_off_and_on_keeps_what_is_open() {
    if !measuring() {
        return;
    }
    install();
    let (before, during) = (span().entered(), {
        set_enabled(false);
        info_span!("off").entered()
    });
    let inside = span().entered();
    set_enabled(true);
    drop(inside);
    drop(during);
    drop(before);
    assert_eq!(
        row(NAME).calls,
        1,
        "the one that was entered while it was on"
    );
    assert_eq!(row("tracing_layer::lifetimes::off").calls, 0);
    assert_eq!(all_lost(), 0);
}

#[test]
fn a_span_that_is_entered_after_the_layers_thread_local_is_gone_is_counted() {
    struct Enters(Span);
    impl Drop for Enters {
        fn drop(&mut self) {
            self.0.in_scope(|| ());
        }
    }
    thread_local!(static ENTERS: OnceCell<Enters> = const { OnceCell::new() });
    // Another layer, so that there are spans that the profiler's does not want.
    let subscriber = registry().with(ProfilerLayer::new()).with(Nothing);
    tracing::subscriber::set_global_default(subscriber).expect("the first of this process");
    thread::spawn(|| {
        // The last one to be registered goes first: the registry's own must be there longest.
        info_span!(target: "hyper", "unwanted").in_scope(|| ());
        ENTERS.with(|enters| _ = enters.set(Enters(span())));
        span().in_scope(|| ());
    })
    .join()
    .expect("it ends");
    assert_eq!(row(NAME).calls, if_measuring(1));
    assert_eq!(lost(SpanLoss::ThreadEnded), if_measuring(1));
    assert_eq!(lost(SpanLoss::NeverEntered), 0, "it is counted once");
}
