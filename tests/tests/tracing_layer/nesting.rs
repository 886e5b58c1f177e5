//! Spans and scopes are parents and children of each other.

use profiler_runtime::{builder, scope, summary};
use profiler_tests::{CpuTimes, if_measuring, measuring, row, work};
use tracing::{info_span, instrument};

use crate::support::{all_lost, install};

#[instrument]
fn annotated(depth: u32) {
    let _inside = scope!("nesting: inside");
    work(200);
    if depth > 0 {
        annotated(depth - 1);
    }
}

#[test]
fn spans_nest_with_scopes_on_both_sides() {
    install();
    {
        let _outside = scope!("nesting: outside");
        annotated(0);
        info_span!("by hand").in_scope(|| work(100));
    }
    let outside = row("nesting: outside");
    let span = row("tracing_layer::nesting::annotated");
    let inside = row("nesting: inside");
    let by_hand = row("tracing_layer::nesting::by hand");
    for row in [&outside, &span, &inside, &by_hand] {
        assert_eq!(row.calls, if_measuring(1), "{}", row.name);
        assert_eq!((row.open, row.out_of_order, row.futures), (0, 0, 0));
    }
    if !measuring() {
        return;
    }
    let close = |one: f64, other: f64| (one - other).abs() < 1.0;
    assert!(close(
        span.cpu().total_ns - span.cpu().self_ns,
        inside.cpu().total_ns
    ));
    let children = span.cpu().total_ns + by_hand.cpu().total_ns;
    assert!(close(
        outside.cpu().total_ns - outside.cpu().self_ns,
        children
    ));
    assert!(by_hand.cpu().p50_ns >= 100_000.0);
    assert_eq!(all_lost(), 0);
}

#[test]
fn a_recursive_span_counts_once_in_the_total() {
    install();
    annotated(2);
    let row = row("tracing_layer::nesting::annotated");
    assert_eq!(
        (row.calls, row.primitive_calls),
        (if_measuring(3), if_measuring(1))
    );
    assert!(row.cpu().total_ns <= summary().wall_ns);
}

#[test]
fn callers_of_spans_are_counted() {
    let _profiler = builder().callers(true).init().expect("set up");
    install();
    {
        let _outside = scope!("nesting: caller");
        annotated(0);
        annotated(0);
    }
    let edges = summary().callers();
    let calls = edges.edges.iter().find(|edge| {
        edge.caller.as_deref() == Some("nesting: caller")
            && edge.callee == "tracing_layer::nesting::annotated"
    });
    assert_eq!(calls.map(|edge| edge.calls), measuring().then_some(2));
}

#[test]
fn spans_of_two_places_with_one_name_are_told_apart() {
    install();
    info_span!("twice").in_scope(|| ());
    for _ in 0..2 {
        info_span!("twice").in_scope(|| ());
    }
    let rows = summary().rows.into_iter();
    let twice = rows.filter(|row| row.name.starts_with("tracing_layer::nesting::twice"));
    let mut calls: Vec<u64> = twice.map(|row| row.calls).collect();
    calls.sort_unstable();
    assert_eq!(calls, if measuring() { vec![1, 2] } else { vec![] });
}

#[test]
fn a_panic_ends_a_span_and_is_counted() {
    install();
    let result = std::panic::catch_unwind(|| {
        let _span = info_span!("panics").entered();
        std::panic::resume_unwind(Box::new("ends here"));
    });
    assert!(result.is_err());
    let row = row("tracing_layer::nesting::panics");
    assert_eq!(
        (row.calls, row.panicked),
        (if_measuring(1), if_measuring(1))
    );
}
