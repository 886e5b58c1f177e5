//! Tests of what a process does to its profiler: start, end, fork, signals, limits, and its environment.

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

use profiler_tests::allocator::TestAllocator;

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

automod::dir!("tests/process");
