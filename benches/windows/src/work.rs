//! The measured functions.

use std::hint::black_box;

use profiler_runtime::measure_execution_time;

#[measure_execution_time(name = "leaf")]
pub(crate) fn leaf(number: u64) -> u64 {
    black_box(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Two scopes.
#[measure_execution_time(name = "branch")]
pub(crate) fn branch(number: u64) -> u64 {
    leaf(number) ^ 1
}

/// Opens `count` scopes without a pause.
pub(crate) fn scopes(count: u64) {
    for number in 0..count / 2 {
        black_box(branch(number));
    }
}

/// Opens scopes with `turns` iterations of work around each two, like a program that works between
/// calls.
pub(crate) fn scopes_apart(count: u64, turns: u64) {
    for number in 0..count / 2 {
        let mut state = branch(number);
        for _ in 0..turns {
            state = black_box(state.rotate_left(7) ^ number);
        }
    }
}
