//! The handlers of a session's windows.

use profiler_host::diagnostics;
use profiler_host::diagnostics::user_code;
use profiler_log::LogOutcome;

use super::trace::Trace;

/// A handler of traces; empty after it has panicked.
pub(super) struct Handler {
    call: Option<TraceHandler>,
}

type TraceHandler = Box<dyn FnMut(&Trace) -> Result<(), String> + Send>;

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

    /// Calls the handler. An error is reported; after a panic the handler is not called again.
    pub(super) fn call(&mut self, trace: &Trace) {
        let Some(call) = &mut self.call else { return };
        match user_code::call(|| call(trace)) {
            Some(Ok(())) => {}
            Some(Err(error)) => diagnostics::warn_once(&format!(
                "a handler of traces failed on the window that ended with step {}: {error}",
                trace.step_num()
            )),
            None => {
                user_code::drop_value(self.call.take());
                diagnostics::warn_once(
                    "a handler of traces panicked: it is not called again, and the session goes on",
                );
            }
        }
    }
}
