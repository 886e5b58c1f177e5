//! Other attributes above and below; `#[track_caller]` still sees the caller.
#![deny(warnings)]

use std::panic::Location;

use profiler_runtime::measure_execution_time;

#[inline]
#[measure_execution_time]
fn above() -> u8 {
    1
}

#[measure_execution_time]
#[inline(always)]
#[must_use]
#[cold]
#[doc = "Documented."]
#[allow(clippy::inline_always)]
fn below() -> u8 {
    2
}

#[track_caller]
#[measure_execution_time]
fn caller_above() -> u32 {
    Location::caller().line()
}

#[measure_execution_time]
#[track_caller]
fn caller_below() -> u32 {
    Location::caller().line()
}

#[measure_execution_time]
#[cfg(any())]
fn left_out() -> NoSuchType {}

#[cfg(not(any()))]
#[measure_execution_time]
fn left_in() {}

#[cfg_attr(not(any()), measure_execution_time)]
fn on_condition() {}

#[deprecated]
#[measure_execution_time]
fn old() {}

#[measure_execution_time]
#[test]
fn tested_below() {}

#[test]
#[measure_execution_time]
fn tested_above() {}

#[profiler_runtime::measure_execution_time]
#[must_use = "it is a number"]
fn by_path() -> u8 {
    3
}

fn main() {
    assert_eq!(above() + below() + by_path(), 6);
    assert_eq!(caller_above(), line!());
    assert_eq!(caller_below(), line!());
    left_in();
    on_condition();
    #[allow(deprecated)]
    old();
}
