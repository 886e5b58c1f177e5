//! A measured call allocates nothing once its thread has called its name, whatever it is measured with, and however its times
//! change from then on.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use profiler_runtime::log::LogError;
use profiler_runtime::{ScalarLogger, flush, measure_execution_time, scope, summary};
use profiler_tests::allocator::{allocations, process_allocations};
use profiler_tests::if_measuring;

struct Nowhere;

/// Whether the logger keeps its thread.
static IS_HELD: AtomicBool = AtomicBool::new(false);

impl ScalarLogger for Nowhere {
    fn add_scalar(&self, _tag: &str, _value: f64, _step: u64) -> Result<(), LogError> {
        while IS_HELD.load(Relaxed) {
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

#[cfg_attr(
    feature = "strip",
    allow(dead_code, reason = "only arguments of the attribute use it")
)]
static NOWHERE: Nowhere = Nowhere;

/// How much each measured call does.
static WORK: AtomicU32 = AtomicU32::new(0);

fn work() {
    for turn in 0..WORK.load(Relaxed) {
        black_box(turn);
    }
}

/// Has the calls of a round take about twice as long as those of the round before, or a thousandth: a busy machine spreads
/// the times of calls as far, and windows of buckets are widened.
fn work_as_in_round(round: u32) {
    WORK.store(1 << (round % 10), Relaxed);
}

#[measure_execution_time]
fn plain() {
    work();
}

#[measure_execution_time(log = &NOWHERE)]
fn to_a_static() {
    work();
}

#[measure_execution_time(log = logger.clone(), global_step = step)]
fn to_an_arc(logger: &Arc<Nowhere>, step: u64) {
    // Stripped, nothing else uses them.
    let _ = (logger, step);
    work();
}

#[measure_execution_time(log = |_, _, _| {})]
fn to_a_closure() {
    work();
}

#[measure_execution_time(log = &NOWHERE, log_every = 10)]
fn now_and_then() {
    work();
}

#[measure_execution_time(bypass = true)]
fn bypassed() {
    work();
}

#[measure_execution_time]
fn recursive(depth: u32) {
    work();
    if depth > 0 {
        recursive(depth - 1);
    }
}

/// How often each form is called in a batch.
const BATCH: u32 = 200;
const BATCHES: usize = 100;
/// More calls than the queue and the ring take.
const FILLING: u32 = 8_000;

#[test]
fn no_form_of_measuring_allocates_in_the_steady_state() {
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
        work();
    };
    // The first rounds make the cells, the ring, the collector and what it keeps. All calls are short, so the cells widen their
    // windows in the batches.
    for _ in 0..400 {
        everything();
    }
    flush(Duration::from_secs(10));
    // While a logger does not return, the queue and then the ring fill up. So the buffers of the profiler's threads are as large
    // as they ever are, however late a busy machine lets these threads run.
    IS_HELD.store(true, Relaxed);
    for _ in 0..FILLING {
        everything();
    }
    IS_HELD.store(false, Relaxed);
    flush(Duration::from_secs(600));
    if if_measuring(1) == 1 {
        let dropped: u64 = summary().dropped.iter().map(|(_, count)| count).sum();
        assert!(dropped > 0, "the ring was full");
    }
    let (mut here, mut everywhere) = (0, [0; BATCHES]);
    for (batch, everywhere) in everywhere.iter_mut().enumerate() {
        WORK.store(0, Relaxed);
        let before = (allocations(), process_allocations());
        for round in 0..BATCH {
            if batch % 2 == 1 {
                work_as_in_round(round);
            }
            everything();
        }
        here += allocations() - before.0;
        *everywhere = process_allocations() - before.1;
        // A flush is no measured call, and may allocate.
        flush(Duration::from_secs(600));
    }
    assert_eq!(here, 0, "on the measured thread");
    assert_eq!(everywhere, [0; BATCHES], "on all threads");
    assert_eq!(
        profiler_tests::rows_ending_in("::plain")
            .iter()
            .map(|row| row.calls)
            .sum::<u64>(),
        if_measuring(400 + u64::from(FILLING) + BATCHES as u64 * u64::from(BATCH))
    );
}
