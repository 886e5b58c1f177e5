//! Tests of sessions, their windows and the traces of these.

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

automod::dir!("tests/windows");
