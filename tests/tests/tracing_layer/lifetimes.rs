//! Spans that are entered twice, elsewhere, never, or in another order than they are exited.

use std::cell::OnceCell;
use std::thread;

use profiler_runtime::report::SpanLoss;
use profiler_runtime::{ProfilerLayer, scope, set_enabled};
use profiler_tests::{CpuTimes, if_measuring, measuring, row, work};
use tracing::subscriber::with_default;
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
fn each_time_that_a_span_is_entered_is_a_call() {
    install();
    let span = span();
    for _ in 0..3 {
        span.in_scope(|| work(100));
    }
    let open = measuring().then(|| row(NAME));
    // It may be that of a future.
    assert!(open.is_none_or(|row| (row.calls, row.open) == (0, 1)));
    drop(span);
    let row = row(NAME);
    assert_eq!(
        (row.calls, row.cpu().calls),
        (if_measuring(3), if_measuring(3))
    );
    assert_eq!(
        (row.primitive_calls, row.futures, row.reentered_spans),
        (if_measuring(3), 0, if_measuring(1))
    );
    if measuring() {
        let cpu = row.cpu();
        assert!(cpu.total_ns >= 300_000.0);
        assert!((3.0 * cpu.mean_ns - cpu.total_ns).abs() < 1.0, "{cpu:?}");
    }
    let table = profiler_runtime::summary().to_string();
    let note = format!("{NAME}: 1 span entered several times: each time is a call");
    assert_eq!(table.contains(&note), measuring(), "{table}");
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
    assert_eq!((row(NAME).calls, row(NAME).open), (0, 0));
    let around = row("lifetimes: around");
    assert_eq!((around.calls, around.open), (if_measuring(10_000), 0));
    assert_eq!(around.out_of_order, 0, "nothing is open inside it");
}

#[test]
fn a_span_after_a_forgotten_guard_is_not_inside_it() {
    install();
    let forgotten = span();
    std::mem::forget(forgotten.enter());
    assert_eq!(row(NAME).open, if_measuring(1));
    drop(forgotten);
    assert_eq!(row(NAME).open, 0);
    span().in_scope(|| work(50));
    let row = row(NAME);
    assert_eq!(
        (row.calls, row.primitive_calls, row.open),
        (if_measuring(1), if_measuring(1), 0)
    );
    assert_eq!(row.out_of_order, 0);
}

/// Enters a span on this thread, exits it nowhere, and closes it on another one.
fn close_elsewhere(span: Span) {
    std::mem::forget(span.enter());
    thread::spawn(move || drop(span))
        .join()
        .expect("it closes there");
}

#[test]
fn a_span_that_another_thread_closes_is_given_up_by_its_own_thread() {
    install();
    thread::spawn(|| {
        for _ in 0..200 {
            close_elsewhere(span());
        }
        let open = row(NAME).open;
        assert!(open <= if_measuring(1), "the others are inside: {open}");
        // An exit around it finds that it is closed.
        let around = info_span!("around").entered();
        let inside = info_span!("inside");
        close_elsewhere(inside);
        drop(around);
        assert_eq!(row("tracing_layer::lifetimes::inside").open, 0);
    })
    .join()
    .expect("it ends");
    assert_eq!(row(NAME).open, 0, "the thread has ended");
    assert_eq!(lost(SpanLoss::NeverExited), if_measuring(201));
    span().in_scope(|| ());
    assert_eq!(row(NAME).primitive_calls, if_measuring(1));
}

#[test]
fn a_layer_that_is_no_more_leaves_no_span_open() {
    thread::spawn(|| {
        for _ in 0..200 {
            let subscriber = registry().with(ProfilerLayer::new());
            with_default(subscriber, || close_elsewhere(span()));
        }
    })
    .join()
    .expect("it ends");
    assert_eq!((row(NAME).calls, row(NAME).open), (0, 0));
    assert_eq!(lost(SpanLoss::NeverExited), if_measuring(200));
}

#[test]
fn a_second_layer_of_a_subscriber_measures_nothing_and_is_warned_of() {
    let nested = registry()
        .with(ProfilerLayer::new())
        .with(ProfilerLayer::new());
    let joined = registry().with(ProfilerLayer::new().and_then(ProfilerLayer::new()));
    with_default(nested, || span().in_scope(|| ()));
    with_default(joined, || span().in_scope(|| ()));
    let row = row(NAME);
    assert_eq!(
        (row.calls, row.cpu().calls, row.open),
        (if_measuring(2), if_measuring(2), 0)
    );
    let notices = profiler_runtime::summary().notices;
    let is_warned = notices
        .iter()
        .any(|notice| notice.contains("two ProfilerLayers"));
    assert_eq!(is_warned, measuring(), "{notices:?}");
    assert_eq!(all_lost(), 0);
}

#[test(measuring)]
fn turning_measuring_off_and_on_keeps_what_is_open() {
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

/// Runs `f` while measuring is off.
fn off<T>(f: impl FnOnce() -> T) -> T {
    set_enabled(false);
    let value = f();
    set_enabled(true);
    value
}

#[test(measuring)]
fn a_span_that_is_entered_only_while_measuring_is_off_is_not_lost() {
    install();
    let spans = [span(), span()];
    off(|| spans[0].in_scope(|| ()));
    drop(spans);
    assert_eq!((row(NAME).calls, all_lost()), (0, 0));
    drop(span());
    assert_eq!(
        lost(SpanLoss::NeverEntered),
        1,
        "one that is on all its life"
    );
}

#[test(measuring)]
fn an_enter_while_measuring_is_off_does_not_end_the_time_around_it() {
    install();
    let span = span();
    let outer = span.enter();
    let inner = off(|| span.enter());
    drop(inner);
    work(100);
    let inner = off(|| {
        let first = span.enter();
        drop(first);
        span.enter()
    });
    drop(inner);
    work(100);
    drop(outer);
    drop(span);
    let row = row(NAME);
    assert_eq!((row.calls, row.cpu().calls, row.open), (1, 1, 0));
    assert!(row.cpu().total_ns >= 200_000.0, "{row:?}");
    assert_eq!(all_lost(), 0);
}

#[test(measuring)]
fn a_time_inside_one_that_began_while_measuring_was_off_is_measured() {
    install();
    let span = span();
    let outer = off(|| span.enter());
    for _ in 0..2 {
        span.in_scope(|| work(50));
    }
    drop(outer);
    drop(span);
    let row = row(NAME);
    assert_eq!((row.calls, row.cpu().calls, row.open), (2, 2, 0));
    assert_eq!(all_lost(), 0);
}

#[test(measuring)]
fn an_exit_while_measuring_is_off_ends_its_time() {
    install();
    let span = span();
    let entered = span.enter();
    off(|| drop(entered));
    assert_eq!(
        (row(NAME).calls, row(NAME).open),
        (0, 1),
        "until it is closed"
    );
    span.in_scope(|| ());
    drop(span);
    let row = row(NAME);
    assert_eq!((row.calls, row.cpu().calls, row.open), (2, 2, 0));
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

#[test(measuring)]
fn a_span_created_while_measuring_is_off_is_measured_from_its_next_enter() {
    // A span that is closed at once after a long call could be taken for one of a future.
    let layer = ProfilerLayer::new().entered_spans();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))
        .expect("the first of this process");
    let (entered, never) = off(|| (span(), info_span!("lifetimes never entered")));
    let in_the_middle = off(|| span().entered());
    for _ in 0..3 {
        entered.in_scope(|| drop(scope!("late: inside")));
    }
    drop(in_the_middle);
    off(|| entered.in_scope(|| ()));
    drop((entered, never));
    assert_eq!((row(NAME).calls, row(NAME).open, all_lost()), (3, 0, 0));
    assert_eq!(row("late: inside").calls, 3);

    // On several threads at once, of which the first to come makes the entry.
    let shared = off(span);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..100).for_each(|_| shared.in_scope(|| ())));
        }
    });
    drop(shared);
    assert_eq!((row(NAME).calls, all_lost()), (803, 0));
}

#[test(measuring, env = [("PROFILER_ENABLED", "0")])]
fn a_program_that_starts_with_measuring_off_has_its_early_spans_later() {
    install();
    let (model, internal) = (span(), info_span!(target: "tokio::task", "internal"));
    model.in_scope(|| ());
    set_enabled(true);
    model.in_scope(|| internal.in_scope(|| ()));
    model.in_scope(|| ());
    drop((model, internal));
    assert_eq!((row(NAME).calls, all_lost()), (2, 0));
    let rows = profiler_runtime::summary().rows;
    assert!(
        rows.iter().all(|row| !row.name.contains("internal")),
        "the layer's filter holds"
    );
}
