//! Warnings that are emitted after all locks are released: a `tracing` subscriber is user code, which may call the
//! session.

use profiler_host::diagnostics;

#[derive(Default)]
pub(super) struct DeferredNotices(Vec<String>);

impl DeferredNotices {
    pub(super) fn add(&mut self, message: &str) {
        self.0.push(message.to_owned());
    }

    pub(super) fn say(self) {
        self.0
            .iter()
            .for_each(|message| diagnostics::warn_once(message));
    }
}
