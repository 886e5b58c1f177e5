//! What gets the windows of a session.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::trace::Trace;
use crate::health;
use crate::log::LogOutcome;

/// A handler, and whether it has panicked.
pub(super) struct Handler {
    call: Option<Call>,
}

type Call = Box<dyn FnMut(&Trace) -> Result<(), String> + Send>;

impl Handler {
    pub(super) fn new<F, R>(mut handler: F) -> Self
    where
        F: FnMut(&Trace) -> R + Send + 'static,
        R: LogOutcome,
    {
        let call = move |trace: &Trace| match handler(trace).into_result() {
            Ok(()) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        Self {
            call: Some(Box::new(call)),
        }
    }

    /// What goes wrong is said; one that has panicked is not called again.
    pub(super) fn call(&mut self, trace: &Trace) {
        let Some(call) = &mut self.call else { return };
        match catch_unwind(AssertUnwindSafe(|| call(trace))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => health::notice(&format!(
                "a handler of traces failed on the window that ended with step {}: {error}",
                trace.step_num()
            )),
            Err(panic) => {
                self.call = None;
                // Its payload is foreign code too.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
                health::notice(
                    "a handler of traces panicked: it is not called again, and the session goes on",
                );
            }
        }
    }
}
