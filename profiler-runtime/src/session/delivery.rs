//! Delivers complete windows to the handlers of a session, on a thread of the session's own.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, MutexGuard};
use std::time::Duration;

use super::handler::Handler;
use super::queue::Queue;
use super::trace::Trace;
use super::window::{WindowBuilder, WindowClose, WindowSpec};
use super::worker;
use crate::diagnostics::contain::{self, contained};
use crate::own_cost;
use crate::process::fork;
use crate::sync::ReentrancyGuard;
use crate::sync::{Lock, wait_while};

/// A window that no more records arrive for.
pub(super) struct CompleteWindow {
    pub(super) spec: WindowSpec,
    pub(super) closing: WindowClose,
    pub(super) builder: WindowBuilder,
    /// The number of windows that this one stands for: itself and earlier ones that were dropped.
    pub(super) windows: u64,
}

/// The delivery queue of one session, and its progress.
pub(super) struct Delivery {
    queue: Queue,
    progress: Lock<Progress>,
    done: Condvar,
    /// `true` if the last trace is kept for [`Profile::trace`](crate::Profile::trace).
    keeps_trace: AtomicBool,
}

#[derive(Default)]
struct Progress {
    /// Windows that were closed in order to be delivered.
    closed: u64,
    /// Windows whose handlers have returned.
    handled: u64,
    last: Option<Arc<Trace>>,
}

impl Delivery {
    pub(super) fn new(keeps_trace: bool) -> Self {
        Self {
            queue: Queue::default(),
            progress: Lock::default(),
            done: Condvar::new(),
            keeps_trace: AtomicBool::new(keeps_trace),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }

    /// Announces a window that was closed and will be delivered.
    pub(super) fn expect_one(&self) {
        self.progress().closed += 1;
    }

    /// Returns the number of windows that were closed so far.
    pub(super) fn closed(&self) -> u64 {
        self.progress().closed
    }

    /// Returns the number of closed windows whose handlers have not returned.
    pub(super) fn left(&self) -> u64 {
        let progress = self.progress();
        progress.closed - progress.handled
    }

    /// Waits until the handlers have returned for every window that is closed by now. Returns `false` on timeout.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        if !fork::is_own_process() {
            return false;
        }
        worker::wake();
        let progress = self.progress();
        let wanted = progress.closed;
        wait_while(&self.done, progress, timeout, |progress| {
            progress.handled < wanted
        })
        .1
    }

    /// Keeps the last trace even though there are handlers.
    pub(super) fn keep_trace(&self) {
        self.keeps_trace.store(true, Relaxed);
    }

    /// Returns the last trace, if traces are kept.
    pub(super) fn last_trace(&self) -> Option<Arc<Trace>> {
        self.progress().last.clone()
    }

    /// Queues a window for the handlers' thread.
    pub(super) fn deliver(&self, complete: CompleteWindow) {
        self.queue.push(complete);
    }

    /// Announces that no further window will be queued.
    pub(super) fn finish(&self) {
        self.queue.finish();
    }

    /// Calls the handlers with each window until the queue is finished.
    pub(super) fn run(&self, mut handlers: Vec<Handler>) {
        while let Some(complete) = self.queue.next() {
            let windows = complete.windows;
            // `Handler::call` catches the panics of handlers; one that arrives here is a bug in the profiler.
            let deliver = || self.call_handlers(*complete, &mut handlers);
            let _ = contained("a window was put together, which is lost", deliver);
            own_cost::note_background();
            self.progress().handled += windows;
            self.done.notify_all();
        }
        // Handlers own values of the program. Drop them one by one: a second panic while the others unwind would abort
        // the process.
        handlers.into_iter().for_each(contain::discard);
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
        for handler in handlers {
            handler.call(&trace);
        }
        let _busy = ReentrancyGuard::try_enter();
        let before = if self.keeps_trace.load(Relaxed) {
            self.progress().last.replace(Arc::new(trace))
        } else {
            drop(trace);
            None
        };
        drop(before);
    }
}
