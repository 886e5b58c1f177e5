//! A measured call allocates nothing once its thread has met its name, whatever it is measured with.

use std::sync::Arc;
use std::time::Duration;

use profiler_runtime::{LogError, ScalarLogger, flush, measure_execution_time, scope};
use profiler_tests::allocator::process_allocations;
use profiler_tests::if_measuring;

struct Nowhere;

impl ScalarLogger for Nowhere {
    fn add_scalar(&self, _tag: &str, _value: f64, _step: u64) -> Result<(), LogError> {
        Ok(())
    }
}

#[cfg_attr(
    feature = "strip",
    allow(dead_code, reason = "only arguments of the attribute use it")
)]
static NOWHERE: Nowhere = Nowhere;

#[measure_execution_time]
fn plain() {}

#[measure_execution_time(log = &NOWHERE)]
fn to_a_static() {}

#[measure_execution_time(log = logger.clone(), global_step = step)]
fn to_an_arc(logger: &Arc<Nowhere>, step: u64) {
    // Stripped, nothing else uses them.
    let _ = (logger, step);
}

#[measure_execution_time(log = |_, _, _| {})]
fn to_a_closure() {}

#[measure_execution_time(log = &NOWHERE, every = 10)]
fn now_and_then() {}

#[measure_execution_time(bypass = true)]
fn bypassed() {}

#[measure_execution_time]
fn recursive(depth: u32) {
    if depth > 0 {
        recursive(depth - 1);
    }
}

/// Allocations of the whole process, the profiler's own threads included, while `calls` runs.
fn allocations(mut calls: impl FnMut()) -> usize {
    let before = process_allocations();
    calls();
    process_allocations() - before
}

#[test]
fn no_form_of_measuring_allocates_after_the_first_call() {
    let logger = Arc::new(Nowhere);
    let name = String::from("steady: built at run time");
    let everything = || {
        plain();
        to_a_static();
        to_an_arc(&logger, 7);
        to_a_closure();
        now_and_then();
        bypassed();
        recursive(20);
        let _literal = scope!("steady: literal");
        let _built = scope!(&name);
    };
    // The first rounds make cells, the ring, the collector and what it keeps.
    for _ in 0..400 {
        everything();
    }
    flush(Duration::from_secs(10));
    let on_this_thread = allocations(|| {
        for _ in 0..200 {
            everything();
        }
    });
    assert_eq!(on_this_thread, 0);
    assert_eq!(
        profiler_tests::rows_ending_in("::plain")
            .iter()
            .map(|row| row.calls)
            .sum::<u64>(),
        if_measuring(600)
    );
}
