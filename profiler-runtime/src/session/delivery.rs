//! Delivers complete windows to the handlers of a session, on a thread of the session's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use profiler_host::diagnostics::{self, catch_own_panic, user_code};
use profiler_host::sync::ReentrancyGuard;
use profiler_host::sync::{Lock, Requests};

use super::handler::Handler;
use super::queue::{CompleteWindow, WindowQueue};
use super::trace::Trace;
use crate::config::KernelRecording;
use crate::memory;
use crate::own_cost;

/// The delivery queue of one session, and its progress.
pub(super) struct Delivery {
    queue: WindowQueue,
    /// One request for each window that was closed in order to be delivered, answered when its handlers have returned.
    windows: Requests,
    last_trace: Lock<Option<Arc<Trace>>>,
    /// `true` if the last trace is kept for [`Profile::trace`](crate::Profile::trace), also if handlers get it.
    keeps_trace: bool,
    /// `true` if the handlers' thread has ended after too many panics.
    has_failed: AtomicBool,
}

impl Delivery {
    pub(super) fn new(keeps_trace: bool) -> Self {
        Self {
            queue: WindowQueue::default(),
            windows: Requests::new(),
            last_trace: Lock::default(),
            keeps_trace,
            has_failed: AtomicBool::new(false),
        }
    }

    /// Announces a window that was closed and will be delivered.
    pub(super) fn expect_one(&self) {
        self.windows.issue();
    }

    /// Returns the number of windows that were closed so far.
    pub(super) fn closed(&self) -> u64 {
        self.windows.issued()
    }

    /// Returns the number of closed windows whose handlers have not returned.
    pub(super) fn left(&self) -> u64 {
        self.windows.unanswered()
    }

    /// Waits until the handlers have returned for every window that is closed by now. Returns `false` on timeout.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let has_thread = || !self.has_failed.load(Relaxed);
        self.windows
            .wait(self.windows.issued(), timeout, has_thread)
    }

    /// Ends all waits: the handlers' thread has ended after too many panics.
    pub(super) fn give_up(&self) {
        self.has_failed.store(true, Relaxed);
        self.windows.recheck_served();
    }

    /// Returns the last trace, if traces are kept.
    pub(super) fn last_trace(&self) -> Option<Arc<Trace>> {
        self.last_trace.lock().clone()
    }

    /// Queues a window for the handlers' thread.
    pub(super) fn deliver(&self, complete: CompleteWindow) {
        self.queue.push(complete);
    }

    /// Returns how many windows wait for the handlers' thread, and how many records.
    #[cfg(test)]
    pub(super) fn queued(&self) -> (u64, usize) {
        self.queue.waiting()
    }

    /// Announces that no further window will be queued.
    pub(super) fn finish(&self) {
        self.queue.finish();
    }

    /// Calls the handlers with each window until the queue is finished.
    pub(super) fn run(&self, handlers: &mut Vec<Handler>) {
        while let Some(complete) = self.queue.next() {
            let windows = complete.windows;
            // `Handler::call` catches the panics of handlers; one that arrives here is a bug in the profiler.
            let deliver = || self.call_handlers(*complete, handlers);
            let _ = catch_own_panic("a window was put together, which is lost", deliver);
            own_cost::note_background();
            self.windows.answer(windows);
        }
        // Handlers own values of the program. Drop them one by one: a second panic while the others unwind would abort
        // the process.
        handlers.drain(..).for_each(user_code::drop_value);
    }

    fn call_handlers(&self, complete: CompleteWindow, handlers: &mut [Handler]) {
        let trace = {
            let _busy = ReentrancyGuard::try_enter();
            let CompleteWindow {
                spec,
                closing,
                builder,
                windows: _,
            } = complete;
            builder.into_trace(&spec, closing)
        };
        warn_of_missing_activities(&trace);
        for handler in handlers {
            handler.call(&trace);
        }
        let _busy = ReentrancyGuard::try_enter();
        let before = if self.keeps_trace {
            self.last_trace.lock().replace(Arc::new(trace))
        } else {
            drop(trace);
            None
        };
        drop(before);
    }
}

/// Warns, once, of what the session was asked to record and could not.
fn warn_of_missing_activities(trace: &Trace) {
    if let Some(reason) = trace.no_cuda_reason() {
        diagnostics::warn_once(&format!(
            "`Activity::Cuda` was given, and a window has no GPU times: {reason}"
        ));
    }
    let options = trace.meta.options;
    // The recorder has warned with the same text, unless it has waited in vain for the driver.
    if options.kernels == KernelRecording::Required
        && let Some(reason) = trace.no_kernels_reason()
    {
        diagnostics::warn_once(&format!("{reason}; kernels are left out"));
    }
    if options.profile_memory && !trace.scopes.is_empty() && !memory::is_installed() {
        diagnostics::warn_once(
            "`profile_memory` was set, and no host memory is counted, since the program has another global allocator: write \
             `#[global_allocator] static ALLOCATOR: ProfilerAllocator = ProfilerAllocator::system();`",
        );
    }
}
