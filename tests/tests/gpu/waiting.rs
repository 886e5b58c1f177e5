//! The tests on the simulated driver would fail if the profiler waited for a device. With `sync` it does wait, and
//! they fail.

use std::panic::catch_unwind;

use profiler_runtime::scope;
use profiler_tests::gpu::{Gpu, driver, is_child};

#[test(measuring)]
fn a_synchronous_scope_ends_a_program_that_may_not_wait() {
    if !is_child() {
        let ended = catch_unwind(|| driver().run());
        let said = ended.err().and_then(|said| said.downcast::<String>().ok());
        let said = said.expect("the program is ended");
        assert!(said.contains("cuEventSynchronize would make"), "{said}");
        return;
    }
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let _scope = scope!("waits", stream = &stream, sync);
    gpu.spin(&stream, 1_000);
}
