//! Tests of GPU times, on a simulated driver.

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

use profiler_tests::allocator::TestAllocator;

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

#[path = "../../simulated-driver/tests/driver/support.rs"]
mod raw;

mod support {
    automod::dir!(pub(crate) "tests/gpu/support");
}

automod::dir!("tests/gpu");
