//! Tests that hold the documents against the code.

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

automod::dir!("tests/docs");
