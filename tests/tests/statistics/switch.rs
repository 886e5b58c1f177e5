//! Turning measuring on and off is effective at once on all threads, and breaks nothing that is open.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use profiler_runtime::{bypass, is_enabled, measure_execution_time, scope, set_enabled};
use profiler_tests::{if_measuring, row};

#[measure_execution_time(name = "flip: outer")]
fn outer(depth: u64) -> u64 {
    if depth == 0 { 1 } else { inner(depth) + 1 }
}

#[measure_execution_time(name = "flip: inner")]
fn inner(depth: u64) -> u64 {
    outer(depth - 1)
}

#[test]
fn flipping_every_millisecond_loses_nothing_and_breaks_nothing() {
    let initially = is_enabled();
    let (done, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    assert_eq!(outer(10), 11);
                    calls.fetch_add(11, Relaxed);
                }
            });
        }
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(500) {
            set_enabled(!is_enabled());
            thread::sleep(Duration::from_millis(1));
        }
        done.store(true, Relaxed);
    });
    set_enabled(initially);
    let measured = row("flip: outer");
    assert!(measured.calls <= calls.load(Relaxed));
    assert_eq!((measured.open, measured.disordered), (0, 0));
    assert!(measured.self_ns <= measured.total_ns + 1.0);
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
    bypass(|| {
        assert!(!is_enabled());
        bypass(call);
        call();
        thread::scope(|scope| drop(scope.spawn(call)));
    });
    call();
    assert_eq!(row("flip: bypassed").calls, if_measuring(2));
}

#[test]
fn a_bypass_ends_with_a_panic_too() {
    let before = is_enabled();
    let result = std::panic::catch_unwind(|| bypass(|| panic!("as asked")));
    assert!(result.is_err());
    assert_eq!(is_enabled(), before);
}

#[test]
fn a_bypass_inside_a_switched_off_program_turns_nothing_on() {
    let initially = is_enabled();
    set_enabled(false);
    bypass(|| assert!(!is_enabled()));
    assert!(!is_enabled());
    set_enabled(initially);
}
