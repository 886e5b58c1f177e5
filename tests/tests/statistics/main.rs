//! Tests of the running statistics: counts, times, and what is exported of them.

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

use profiler_tests::allocator::TestAllocator;

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

automod::dir!("tests/statistics");
