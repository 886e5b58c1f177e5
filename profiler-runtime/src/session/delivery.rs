//! The way of complete windows through the handlers of a session, which have a thread of their own.

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

/// A window that nothing is waited for any more.
pub(super) struct CompleteWindow {
    pub(super) spec: WindowSpec,
    pub(super) closing: WindowClose,
    pub(super) builder: WindowBuilder,
    /// How many it stands for: with those that were not handed over.
    pub(super) windows: u64,
}

/// What is handed over, and how far that has come.
pub(super) struct Delivery {
    queue: Queue,
    progress: Lock<Progress>,
    done: Condvar,
    /// Whether the last trace is kept for who asks.
    keeps_trace: AtomicBool,
}

#[derive(Default)]
struct Progress {
    /// Windows that were closed to be handed over.
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

    /// A window was closed, and will come.
    pub(super) fn expect_one(&self) {
        self.progress().closed += 1;
    }

    /// Windows that were closed so far.
    pub(super) fn closed(&self) -> u64 {
        self.progress().closed
    }

    /// Closed windows that have not gone through the handlers.
    pub(super) fn left(&self) -> u64 {
        let progress = self.progress();
        progress.closed - progress.handled
    }

    /// Waits until the handlers of all windows that are closed have returned; false where the time is over.
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

    /// Has the last trace kept, though there are handlers.
    pub(super) fn keep_trace(&self) {
        self.keeps_trace.store(true, Relaxed);
    }

    /// The last trace, where it is kept.
    pub(super) fn last_trace(&self) -> Option<Arc<Trace>> {
        self.progress().last.clone()
    }

    /// Hands a window to the handlers' thread.
    pub(super) fn deliver(&self, complete: CompleteWindow) {
        self.queue.push(complete);
    }

    /// No window comes any more.
    pub(super) fn finish(&self) {
        self.queue.finish();
    }

    /// Calls the handlers with each window, to the last.
    pub(super) fn run(&self, mut handlers: Vec<Handler>) {
        while let Some(complete) = self.queue.next() {
            let windows = complete.windows;
            // What panics in a handler is caught there: this is a fault of the profiler's.
            let deliver = || self.call_handlers(*complete, &mut handlers);
            let _ = contained("a window was put together, which is lost", deliver);
            own_cost::note_background();
            self.progress().handled += windows;
            self.done.notify_all();
        }
        // What they hold is the program's. One by one: a second panic while the others are dropped would end the process.
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
