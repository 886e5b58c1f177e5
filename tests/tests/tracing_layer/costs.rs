//! Spans take memory once for each call site, thread and open span, and none with each call.

use profiler_tests::allocator::{BYTES, allocations};
use profiler_tests::{if_measuring, row};
use std::sync::atomic::Ordering::Relaxed;
use tracing::info_span;

use crate::support::{all_lost, install};

fn nested() {
    let _outer = info_span!("outer").entered();
    for _ in 0..3 {
        let _inner = info_span!("inner", field = 3).entered();
    }
}

fn resumed() {
    let span = info_span!("resumed");
    for _ in 0..3 {
        span.in_scope(|| ());
    }
}

#[test]
fn no_span_allocates_after_the_first_of_its_call_site() {
    install();
    let everything = || {
        nested();
        resumed();
    };
    for _ in 0..100 {
        everything();
    }
    let (before, bytes) = (allocations(), BYTES.load(Relaxed));
    for _ in 0..100_000 {
        everything();
    }
    assert_eq!(allocations() - before, 0, "on the measured thread");
    let grown = BYTES.load(Relaxed) - bytes;
    assert!(grown < 1 << 20, "{grown} bytes");
    assert_eq!(
        row("tracing_layer::costs::inner").calls,
        if_measuring(300_300)
    );
    assert_eq!(
        row("tracing_layer::costs::resumed").calls,
        if_measuring(100_100)
    );
    assert_eq!(all_lost(), 0);
}

#[test]
fn many_spans_can_be_open_at_once() {
    install();
    let spans: Vec<_> = (0..100_000).map(|_| info_span!("open")).collect();
    for span in &spans {
        span.in_scope(|| ());
    }
    drop(spans);
    assert_eq!(
        row("tracing_layer::costs::open").calls,
        if_measuring(100_000)
    );
    assert_eq!(all_lost(), 0);
}
