//! The warnings about calls that the driver refuses.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_cuda_sys::driver::Code;
use profiler_host::diagnostics;
use profiler_host::sync::ReentrancyGuard;

use super::EventApi;

/// Warns that the driver refuses a call.
#[cold]
pub(crate) fn warn_of_refused_call(driver: &impl EventApi, call: &str, code: Code) {
    let name = {
        let _guard = ReentrancyGuard::try_enter();
        driver.name_of(code)
    };
    diagnostics::warn_once(&format!(
        "{call} returned {name} ({}): the GPU times that needed the call are left out and counted",
        code.0
    ));
}

/// Warns that a measured function runs inside a host function.
///
/// The warning has no error name: `cuGetErrorName` must not be called there either.
#[cold]
pub(crate) fn warn_of_host_function() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Relaxed) {
        diagnostics::warn_once(
            "a measured function runs inside a host function (cuLaunchHostFunc, cuStreamAddCallback), where the CUDA driver \
             must not be called: its GPU times are left out and counted; write `bypass = true` for functions that run there",
        );
    }
}
