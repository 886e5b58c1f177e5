//! A shared or static logger, or a closure that captures nothing, travels without an allocation.

use std::hint::black_box;
use std::sync::Arc;

use profiler_runtime::log::IntoLogger;
use profiler_runtime::{ScalarLogger, TracingLogger};
use profiler_tests::allocator;

/// Returns how many blocks `convert` allocates, and the drop of its result.
fn allocations<T>(convert: impl FnOnce() -> T) -> usize {
    let before = allocator::allocations();
    drop(black_box(convert()));
    allocator::allocations() - before
}

#[test]
fn conversion_does_not_allocate_unless_a_closure_captures() {
    static TRACING: TracingLogger = TracingLogger;
    let shared = Arc::new(TracingLogger);
    let object: Arc<dyn ScalarLogger> = shared.clone();
    let captured = String::new();

    assert_eq!(allocations(|| shared.clone().into_logger()), 0);
    assert_eq!(allocations(|| object.clone().into_logger()), 0);
    assert_eq!(allocations(|| (&TRACING).into_logger()), 0);
    assert_eq!(allocations(|| TracingLogger.into_logger()), 0);
    assert_eq!(
        allocations(|| (|_: &str, _: f64, _: u64| {}).into_logger()),
        0
    );

    let capturing = move |_: &str, _: f64, _: u64| assert!(captured.is_empty());
    assert_eq!(
        allocations(|| capturing.into_logger()),
        1,
        "the counter counts"
    );
}
