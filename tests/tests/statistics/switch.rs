//! Turning measuring on and off is effective at once on all threads, and breaks nothing that is open.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

use profiler_runtime::{is_enabled, measure_execution_time, pause, scope, set_enabled};
use profiler_tests::CpuTimes;
use profiler_tests::{if_measuring, row};

#[measure_execution_time(name = "flip: outer")]
fn outer(depth: u64) -> u64 {
    if depth == 0 { 1 } else { inner(depth) + 1 }
}

#[measure_execution_time(name = "flip: inner")]
fn inner(depth: u64) -> u64 {
    outer(depth - 1)
}

const THREADS: usize = 4;

/// Waits until each thread has begun and ended a round since now: of three that end, the first may have begun before, and the
/// second may have begun before the thread saw this thread's latest writes.
fn wait_for_whole_rounds(rounds: &[AtomicU64; THREADS]) {
    let seen = rounds.each_ref().map(|count| count.load(SeqCst));
    for (count, seen) in rounds.iter().zip(seen) {
        while count.load(SeqCst) < seen + 3 {
            thread::yield_now();
        }
    }
}

#[test]
fn flipping_the_switch_loses_no_call_and_breaks_none() {
    const FLIPS: u64 = 50;
    /// Calls of `outer` in a round.
    const CALLS: u64 = 11;

    let initially = is_enabled();
    let (done, rounds) = (
        AtomicBool::new(false),
        [const { AtomicU64::new(0) }; THREADS],
    );
    thread::scope(|scope| {
        for count in &rounds {
            let done = &done;
            scope.spawn(move || {
                while !done.load(SeqCst) {
                    assert_eq!(outer(10), CALLS);
                    count.fetch_add(1, SeqCst);
                }
            });
        }
        for flip in 0..2 * FLIPS {
            set_enabled(flip % 2 == 0);
            wait_for_whole_rounds(&rounds);
        }
        done.store(true, SeqCst);
    });
    set_enabled(initially);
    let all = rounds.iter().map(|count| count.load(SeqCst)).sum::<u64>() * CALLS;
    let at_least = THREADS as u64 * FLIPS * CALLS;
    let measured = row("flip: outer");
    if cfg!(feature = "strip") {
        assert_eq!(measured.calls, 0);
    } else {
        // At least one whole round of each thread ran in each state.
        let possible = at_least..=all - at_least;
        assert!(possible.contains(&measured.calls), "{measured:?} of {all}");
    }
    assert_eq!((measured.open, measured.out_of_order), (0, 0));
    assert!(measured.cpu().self_ns <= measured.cpu().total_ns + 1.0);
}

/// Many tests return at once where nothing is measured; this one holds that something is, wherever it should be.
#[test]
fn measuring_is_on_unless_it_is_stripped_or_switched_off() {
    let is_off = std::env::var_os("PROFILER_ENABLED").is_some_and(|value| value == "0");
    assert_eq!(is_enabled(), !is_off && !cfg!(feature = "strip"));
}

#[test]
fn a_scope_ends_as_it_began() {
    let initially = is_enabled();
    set_enabled(true);
    let measured = scope!("flip: began on");
    set_enabled(false);
    let unmeasured = scope!("flip: began off");
    drop(measured);
    set_enabled(true);
    drop(unmeasured);
    let expected = u64::from(is_enabled());
    set_enabled(initially);
    assert_eq!(row("flip: began on").calls, expected);
    assert_eq!(row("flip: began off").calls, 0);
}

#[test]
fn a_bypass_holds_on_all_threads_until_the_last_one_ends() {
    let call = || drop(scope!("flip: bypassed"));
    call();
    pause(|| {
        assert!(!is_enabled());
        pause(call);
        call();
        thread::scope(|scope| drop(scope.spawn(call)));
    });
    call();
    assert_eq!(row("flip: bypassed").calls, if_measuring(2));
}

#[test]
fn a_bypass_ends_with_a_panic_too() {
    let before = is_enabled();
    let result = std::panic::catch_unwind(|| pause(|| panic!("as asked")));
    assert!(result.is_err());
    assert_eq!(is_enabled(), before);
}

#[test]
fn a_bypass_inside_a_switched_off_program_turns_nothing_on() {
    let initially = is_enabled();
    set_enabled(false);
    pause(|| assert!(!is_enabled()));
    assert!(!is_enabled());
    set_enabled(initially);
}
