//! Tests of the ranges that NVTX tools get: each runs its program in one more process, under a tool that writes all calls
//! down.

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

automod::dir!("tests/nvtx");
