//! A guard of `init` that is dropped at once closes the profiler before the program measures, which is reported.

use profiler_runtime::{init, measure, summary};
use profiler_tests::counts::expected;

/// Returns the notices about a guard that was dropped too early.
fn notices() -> Vec<String> {
    let mut notices = summary().notices;
    notices.retain(|notice| notice.contains("guard of `init`"));
    notices
}

#[test]
fn a_guard_that_is_dropped_before_anything_is_measured_is_reported_once() {
    let _ = init().expect("set up");
    assert!(notices().is_empty(), "nothing has been measured since");
    for step in 0..2 {
        drop(measure!("after the guard", global_step = step));
        drop(measure!(format!("after the guard {step}")));
    }
    let notices = notices();
    assert_eq!(notices.len() as u64, expected(1), "{notices:?}");
    if let [notice] = &*notices {
        let remedy = "`let _profiler = profiler_runtime::init()?;`";
        assert!(notice.contains(remedy), "{notice}");
    }
}

#[test]
fn a_guard_that_is_dropped_after_measuring_is_not_reported() {
    let guard = init().expect("set up");
    drop(measure!("under the guard"));
    drop(guard);
    drop(measure!("after the guard"));
    assert!(notices().is_empty(), "{:?}", notices());
}

#[test]
fn a_guard_after_one_that_was_dropped_keeps_the_profiler_open() {
    drop(init().expect("set up"));
    let _guard = init().expect("set up");
    drop(measure!("under the second guard"));
    assert!(notices().is_empty(), "{:?}", notices());
}
