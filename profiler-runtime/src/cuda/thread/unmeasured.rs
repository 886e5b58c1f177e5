//! Scopes that end without having begun a GPU scope: counts those that miss a stream, and finds contexts that are new.

use profiler_cuda_sys::driver::{Driver, Fault, RawContext};
use profiler_host::sync::ReentrancyGuard;

use super::state;
use super::target::target;
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::library;
use crate::stats::StatCell;

/// Counts a call of a name for which no stream is named, if a context is current on its thread.
pub(crate) fn count_without_stream(cell: Option<&StatCell>, elapsed: i64) {
    let driver = library::driver().filter(|_| library::is_in_use());
    let (Some(cell), Some(driver)) = (cell, driver) else {
        return;
    };
    // The driver is not called inside the profiler, or on a thread that is ending.
    let has_context = !ReentrancyGuard::is_entered()
        && state::with(|thread| thread.has_context(driver, elapsed)) == Some(true);
    if has_context {
        cell.without_stream.add(1);
    }
}

/// Returns `true` if a scope on this thread that names no stream itself has none. Does not call the driver.
pub(crate) fn has_no_stream() -> bool {
    !library::is_in_use() || state::with(|thread| target(thread, None).is_none()) != Some(false)
}

/// Returns `true` if a context is current on this thread, at the end of a scope that began without one.
pub(crate) fn context_became_current() -> bool {
    // The driver is not called inside the profiler, or on a thread that is ending.
    let may_call = || {
        !ReentrancyGuard::is_entered()
            && state::with(|thread| thread.backoff.skips_scope()) == Some(false)
    };
    library::driver()
        .filter(|_| may_call())
        .and_then(current_context)
        .is_some_and(|context| context != RawContext::NONE)
}

fn current_context(driver: &Driver) -> Option<RawContext> {
    let context = driver.current_context();
    if context.is_err_and(|code| code.fault() == Fault::NotPermitted) {
        state::with(|thread| thread.backoff.extend());
    }
    context.ok()
}
