//! All contexts that GPU times have been taken in.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_cuda_sys::driver::RawContext;
use profiler_host::diagnostics;
use profiler_host::process::exit;
use profiler_host::sync::{Lock, Locked};

use super::Context;
use crate::cuda::ffi::EventApi;
use crate::switch::with_control;

/// The most contexts that GPU times are taken in. Programs have one for each device.
const MAX_CONTEXTS: usize = 256;

static CONTEXTS: Lock<Vec<&'static Context>> = Lock::new(Vec::new());

fn contexts() -> Locked<'static, Vec<&'static Context>> {
    CONTEXTS.lock()
}

/// Returns all contexts that exist now.
pub(crate) fn all() -> Vec<&'static Context> {
    contexts().clone()
}

/// Returns the context with a handle, and adds it on the first call. Returns `None` if there are too many.
#[cold]
pub(crate) fn of(driver: &impl EventApi, raw: RawContext) -> Option<&'static Context> {
    let capacity = with_control(|control| control.settings.cuda_events);
    let mut contexts = contexts();
    if let Some(known) = contexts.iter().find(|context| context.raw == raw) {
        return Some(known);
    }
    if contexts.len() >= MAX_CONTEXTS {
        drop(contexts);
        warn_too_many();
        return None;
    }
    #[allow(clippy::cast_possible_truncation, reason = "below MAX_CONTEXTS")]
    let index = contexts.len() as u32;
    let context: &'static Context = Box::leak(Box::new(Context::new(raw, index, capacity)));
    contexts.push(context);
    drop(contexts);
    // The program has a context, so it has initialised the driver.
    precede_driver_at_exit();
    // Not left to the resolver: a short program may have released the context before the resolver's first round.
    let _ = driver.relaxed(|| {
        driver.with_context(raw, || {
            context.retain(driver);
            // Adopts the id that the context has now.
            let _ = context.has_other_id(driver);
            Ok(())
        })
    });
    Some(context)
}

fn warn_too_many() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Relaxed) {
        diagnostics::warn_once(&format!(
            "the program has made more than {MAX_CONTEXTS} CUDA contexts: GPU times are taken in the first ones only, \
             those that were destroyed included"
        ));
    }
}

/// Makes the exit hooks run before the exit handler of the driver, which has registered it by now: the hooks read the
/// last GPU times. A second run writes later measurements to a file.
fn precede_driver_at_exit() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Relaxed) && !exit::run_before_registered_handlers() {
        diagnostics::warn_once(exit::NO_HANDLER);
    }
}
