//! Tests of what the attribute and the macros make of a function, a block or a future.

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

automod::dir!("tests/macros");
