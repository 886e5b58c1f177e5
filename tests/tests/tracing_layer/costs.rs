//! Spans take memory once for each call site, thread and open span, and none with each call.

use profiler_tests::allocator::{BYTES, allocations};
use profiler_tests::{if_measuring, row};
use std::sync::atomic::Ordering::Relaxed;
use tracing::info_span;

use crate::support::{all_lost, install};

/// The most pairs of events of a context (`PROFILER_CUDA_EVENTS`), and room for what holds them. Each is one allocation.
const EVENTS: usize = 4096 + 64;

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
    let allocated = allocations() - before;
    let grown = BYTES.load(Relaxed) - bytes;
    // With GPU times, the pool of events grows by a batch whenever the background thread is further behind than before, as it
    // is on a busy machine. It has a limit, whatever the number of spans is.
    let has_gpu_times = row("tracing_layer::costs::inner").cuda.is_some();
    let limit = if has_gpu_times { EVENTS } else { 0 };
    assert!(allocated <= limit, "{allocated} on the measured thread");
    let limit = if has_gpu_times { 8 << 20 } else { 1 << 20 };
    assert!(grown < limit, "{grown} bytes");
    assert_eq!(
        row("tracing_layer::costs::inner").calls,
        if_measuring(300_300)
    );
    assert_eq!(
        row("tracing_layer::costs::resumed").calls,
        if_measuring(300_300)
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
