//! Without a `global_step` the steps of a name count its calls, over all threads, from zero.

#![cfg(not(feature = "strip"))]

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use profiler_runtime::{flush, measure_execution_time, measure_execution_time_context};
use profiler_tests::{measuring, row};

type Steps = Mutex<Vec<u64>>;

fn taken(steps: &Steps) -> Vec<u64> {
    assert_eq!(flush(Duration::from_secs(20)).left, 0);
    steps.lock().unwrap().clone()
}

static THREADS: Steps = Mutex::new(Vec::new());

#[measure_execution_time(name = "steps: threads", log = |_, _, step| THREADS.lock().unwrap().push(step))]
fn on_threads() {}

#[test]
fn steps_are_unique_and_without_gaps_across_threads() {
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..500 {
                    on_threads();
                    thread::yield_now();
                }
            });
        }
    });
    let mut steps = taken(&THREADS);
    steps.sort_unstable();
    assert_eq!(row("steps: threads").dropped_entries, 0);
    let expected: Vec<u64> = (0..if measuring() { 3_000 } else { 0 }).collect();
    assert_eq!(steps, expected);
}

static EVERY: Steps = Mutex::new(Vec::new());

#[measure_execution_time(name = "steps: every", log_every = 7, log = |_, _, step| EVERY.lock().unwrap().push(step))]
fn now_and_then() {}

#[test]
fn log_every_logs_one_call_in_n_with_its_number() {
    for _ in 0..30 {
        now_and_then();
    }
    let expected: &[u64] = if measuring() {
        &[0, 7, 14, 21, 28]
    } else {
        &[]
    };
    assert_eq!(taken(&EVERY), expected);
    assert_eq!(
        row("steps: every").calls,
        if measuring() { 30 } else { 0 },
        "all are counted"
    );
}

static THREAD_EACH: Steps = Mutex::new(Vec::new());

#[measure_execution_time(name = "steps: a thread each", log_every = 10, log = |_, _, step| THREAD_EACH.lock().unwrap().push(step))]
fn on_a_thread_of_its_own() {}

#[test]
fn log_every_counts_the_calls_of_all_threads() {
    for _ in 0..50 {
        thread::spawn(on_a_thread_of_its_own).join().unwrap();
    }
    let expected: &[u64] = if measuring() {
        &[0, 10, 20, 30, 40]
    } else {
        &[]
    };
    assert_eq!(taken(&THREAD_EACH), expected);
}

static WAVES: Steps = Mutex::new(Vec::new());

#[measure_execution_time(name = "steps: waves", log_every = 100, log = |_, _, step| WAVES.lock().unwrap().push(step))]
fn in_waves() {}

#[test]
fn short_lived_threads_at_once_log_their_share() {
    for _ in 0..100 {
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| (0..10).for_each(|_| in_waves()));
            }
        });
    }
    let logged = taken(&WAVES).len();
    // The turns that threads are in the middle of are not lost, but not over yet.
    assert!(
        !measuring() || (140..=180).contains(&logged),
        "{logged} of 16,000 calls"
    );
}

static SHARED: Steps = Mutex::new(Vec::new());

#[measure_execution_time(name = "steps: shared", log_every = 3, log = |_, _, step| SHARED.lock().unwrap().push(step))]
fn thinned() {}

#[measure_execution_time(name = "steps: shared", log = |_, _, step| SHARED.lock().unwrap().push(step))]
fn full() {}

#[test]
fn steps_stay_unique_where_call_sites_of_a_name_log_differently() {
    for _ in 0..30 {
        thinned();
        full();
    }
    let steps = taken(&SHARED);
    assert!(steps.is_sorted_by(|left, right| left < right), "{steps:?}");
    assert_eq!(steps.len(), if measuring() { 40 } else { 0 });
}

static GIVEN: Mutex<Vec<(String, u64)>> = Mutex::new(Vec::new());

#[test]
fn a_given_step_is_logged_as_it_is() {
    for epoch in [3_i32, 1, 4] {
        measure_execution_time_context!(
            "steps: given",
            log = |tag, milliseconds, step| {
                assert!(milliseconds >= 0.0);
                GIVEN.lock().unwrap().push((tag.to_owned(), step));
            },
            global_step = epoch,
            {}
        );
    }
    assert_eq!(flush(Duration::from_secs(20)).left, 0);
    let taken = GIVEN.lock().unwrap().clone();
    let expected: Vec<_> = [3, 1, 4]
        .map(|step| ("steps: given/cpu_ms".to_owned(), step))
        .into();
    assert_eq!(taken, if measuring() { expected } else { Vec::new() });
}
