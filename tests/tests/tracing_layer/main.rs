//! Tests of the layer for `tracing-subscriber`: spans are measured as scopes are, whatever programs do with them.

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

use profiler_tests::allocator::TestAllocator;

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

automod::dir!("tests/tracing_layer");
