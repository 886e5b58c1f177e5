//! Windows on their way from the thread that fills them to the one of their session's handlers.

use std::collections::VecDeque;
use std::sync::{Condvar, MutexGuard, PoisonError};

use super::delivery::CompleteWindow;
use crate::sync::Lock;

/// Windows that wait for their handlers at most with what they hold; of more, only the counts are left.
const MAX_FULL: usize = 4;
/// Windows that wait at all; of more, the newest takes over the counts of the one before it.
const MAX_QUEUED: usize = 1024;

#[derive(Default)]
pub(super) struct Queue {
    state: Lock<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Box<CompleteWindow>>,
    /// Whether the handlers are at work on one.
    is_at_work: bool,
    /// Whether none comes any more.
    is_over: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn push(&self, mut complete: CompleteWindow) {
        let mut state = self.state();
        let ahead = state.waiting.len() + usize::from(state.is_at_work);
        if ahead >= MAX_FULL {
            complete.empty();
        }
        if ahead >= MAX_QUEUED
            && let Some(last) = state.waiting.pop_back()
        {
            complete.replace(&last);
        }
        state.waiting.push_back(Box::new(complete));
        self.arrived.notify_all();
    }

    /// No window comes any more.
    pub(super) fn finish(&self) {
        self.state().is_over = true;
        self.arrived.notify_all();
    }

    /// The next one, once the one before has been handled; none where no more come.
    pub(super) fn next(&self) -> Option<Box<CompleteWindow>> {
        let mut state = self.state();
        state.is_at_work = false;
        loop {
            if let Some(complete) = state.waiting.pop_front() {
                state.is_at_work = true;
                return Some(complete);
            }
            if state.is_over {
                return None;
            }
            let woken = self.arrived.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl CompleteWindow {
    /// Gives everything up but the counts.
    fn empty(&mut self) {
        self.builder.empty();
        self.closing.steps = Vec::new();
    }

    /// Takes the place of a window before it that is not handed over, with its counts.
    fn replace(&mut self, before: &Self) {
        self.windows += before.windows;
        self.spec.lost_before = before.spec.lost_before;
        self.builder.take_counts(&before.builder);
    }
}
