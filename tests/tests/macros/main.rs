//! Tests of what the attribute and the macros make of a function, a block or a future.
//!
//! No form of either causes a warning, whether it is measured or stripped.
#![deny(warnings)]
#![cfg_attr(
    feature = "strip",
    allow(
        unused_variables,
        dead_code,
        reason = "only arguments use them, and those are gone"
    )
)]

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

automod::dir!("tests/macros");
