//! Complete windows on their way to the handlers' thread.

use std::collections::VecDeque;
use std::sync::Condvar;

use profiler_host::sync::{self, Lock, Locked};

use super::window::{WindowClose, WindowSpec};
use super::window_builder::WindowBuilder;

/// Windows that wait for the handlers with all their records, however many these are.
const MAX_FULL: usize = 4;
/// The most records of the windows that wait, where there are more: many short windows come at once. A window beyond both
/// keeps only its counts.
const MAX_RECORDS: usize = 1 << 16;
/// Windows that wait in total; beyond that, the newest one takes over the counts of the one before it.
const MAX_QUEUED: usize = 1024;

/// A window that no more records arrive for.
pub(super) struct CompleteWindow {
    pub(super) spec: WindowSpec,
    pub(super) closing: WindowClose,
    pub(super) builder: WindowBuilder,
    /// The number of windows that this one stands for: itself and earlier ones that were dropped.
    pub(super) windows: u64,
}

impl CompleteWindow {
    /// Drops all records and keeps the counts.
    fn drop_records(&mut self) {
        self.builder.drop_records();
        self.closing.steps = Vec::new();
    }

    /// Takes over the counts of an earlier window that will not be delivered.
    fn replace(&mut self, mut before: Self) {
        before.drop_records();
        self.windows += before.windows;
        self.spec.lost_before = before.spec.lost_before;
        self.spec.skipped += before.spec.skipped;
        self.builder.take_counts(&before.builder);
    }
}

#[derive(Default)]
pub(super) struct WindowQueue {
    state: Lock<QueueState>,
    arrived: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Box<CompleteWindow>>,
    /// The records of those that wait.
    records: usize,
    /// `true` while handlers run.
    is_handling: bool,
    /// `true` if no further window will be queued.
    is_finished: bool,
}

impl WindowQueue {
    fn state(&self) -> Locked<'_, QueueState> {
        self.state.lock()
    }

    pub(super) fn push(&self, mut complete: CompleteWindow) {
        let mut state = self.state();
        let ahead = state.waiting.len() + usize::from(state.is_handling);
        if ahead >= MAX_QUEUED
            && let Some(last) = state.waiting.pop_back()
        {
            state.records -= last.builder.records();
            complete.replace(*last);
        }
        if ahead >= MAX_FULL && state.records + complete.builder.records() > MAX_RECORDS {
            complete.drop_records();
        }
        state.records += complete.builder.records();
        state.waiting.push_back(Box::new(complete));
        self.arrived.notify_all();
    }

    /// Returns how many windows wait, with those that were merged, and how many records.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> (u64, usize) {
        let state = self.state();
        let windows = state.waiting.iter().map(|window| window.windows);
        (windows.sum(), state.records)
    }

    /// Announces that no further window will be queued.
    pub(super) fn finish(&self) {
        self.state().is_finished = true;
        self.arrived.notify_all();
    }

    /// Waits for the next window. Returns `None` when the queue is finished. Calling it again means that the previous
    /// window was handled.
    pub(super) fn next(&self) -> Option<Box<CompleteWindow>> {
        let mut state = self.state();
        state.is_handling = false;
        loop {
            if let Some(complete) = state.waiting.pop_front() {
                state.records -= complete.builder.records();
                state.is_handling = true;
                return Some(complete);
            }
            if state.is_finished {
                return None;
            }
            state = sync::wait(&self.arrived, state);
        }
    }
}
