//! Tests of `ProfilerAllocator` and of memory by scope.

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

use profiler_runtime::ProfilerAllocator;

#[global_allocator]
static ALLOCATOR: ProfilerAllocator = ProfilerAllocator::system();

automod::dir!("tests/memory");
