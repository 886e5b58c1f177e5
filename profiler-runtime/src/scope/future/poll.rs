//! One poll of a measured future.

use super::{FutureState, Running};
use crate::clock::{elapsed, now};
use crate::cuda::{self, Begun};
use crate::diagnostics::catch_own_panic;
use crate::local::{self, NoCell, ThreadState};
use crate::scope::builder::ScopeBuilder;
use crate::session::{self, EndedScope, FutureRecord, RecordEnding};
use crate::stats::{Ending, StatCell};
use crate::switch::SiteDecision;

/// One poll: open on the thread that polls, closed even when the poll panics.
///
/// Stands on the stack of each level of nested futures while the inner ones are polled. What opens and closes it is
/// never inlined: its own stack is gone by then.
pub(super) struct PollGuard<'a> {
    state: &'a mut FutureState,
    builder: Option<&'a mut ScopeBuilder<'static>>,
    cell: Option<&'static StatCell>,
    start: u64,
    serial: u64,
    outer: u64,
    outer_children: i64,
    outer_floor: u64,
    /// Its place among the GPU scopes of this thread; zero for none.
    cuda_place: u64,
    /// False where the future is not measured, or has ended.
    is_open: bool,
    /// Whether the future is ready.
    pub(super) is_last: bool,
}

impl<'a> PollGuard<'a> {
    /// Opens the scope of a future as the innermost one of this thread; the clock is read last.
    #[inline]
    pub(super) fn enter(
        (state, builder): (&'a mut FutureState, Option<&'a mut ScopeBuilder<'static>>),
    ) -> Self {
        let decision = state.decision;
        let mut frame = Self {
            state,
            builder,
            cell: None,
            start: 0,
            serial: 0,
            outer: 0,
            outer_children: 0,
            outer_floor: 0,
            cuda_place: 0,
            is_open: false,
            is_last: false,
        };
        if let Some(decision) = decision {
            frame.open(decision);
        }
        frame
    }

    #[inline(never)]
    fn open(&mut self, decision: SiteDecision) {
        let running = &mut self.state.running;
        let (mut ask, shapes) = match self.builder.as_deref_mut().filter(|_| running.is_none()) {
            Some(builder) => (builder.ask.take(), builder.shapes.take()),
            None => (None, None),
        };
        // Before the clock is read, as for any scope.
        let cell = local::cell(decision.id());
        // Inside the profiler nothing is measured.
        let is_busy = cell.is_err_and(|reason| reason == NoCell::Reentrant);
        let wants_cuda = running.is_none() && !is_busy && (decision.is_cuda() || ask.is_some());
        let begun = wants_cuda.then(|| cuda::begin_task(decision.id(), ask.as_mut()));
        self.cell = cell.ok();
        let first = running.is_none();
        let record = if first && !is_busy {
            FutureRecord::begin(local::innermost(), shapes)
        } else {
            None
        };
        self.start = now();
        let running = running.get_or_insert_with(|| Running {
            first_poll: self.start,
            polled: 0,
            children: 0,
            outermost: true,
            panicking: std::thread::panicking(),
            last_end: self.start,
            panicked: false,
            cuda: begun.unwrap_or(Err(Begun::NotAsked)),
            record,
        });
        let place = running.cuda.as_ref().ok().and_then(cuda::push_poll);
        self.cuda_place = place.unwrap_or(0);
        self.is_open = true;
        local::with_state(|state| self.push(state, first));
    }

    fn push(&mut self, state: &ThreadState, first: bool) {
        if state.top.get() == local::ENDED {
            return;
        }
        self.serial = state.serial.get() + 1;
        state.serial.set(self.serial);
        self.outer = state.top.replace(self.serial);
        self.outer_floor = state.floor.replace(self.serial);
        self.outer_children = state.children.replace(0);
        let Some(cell) = self.cell else { return };
        let outermost = cell.enter_poll(self.serial);
        if first {
            if let Some(running) = &mut self.state.running {
                running.outermost = outermost;
            }
            cell.begin_future();
        }
    }

    #[inline(never)]
    fn close(&mut self) {
        let end = now();
        let elapsed = elapsed(self.start, end);
        if let Some(running) = &mut self.state.running {
            running.last_end = end;
            running.polled += elapsed;
            running.panicked |= std::thread::panicking() && !running.panicking;
        }
        local::with_state(|state| self.pop(state, elapsed));
        if self.cuda_place != 0 {
            catch_own_panic("a poll ended", || cuda::pop_poll(self.cuda_place));
        }
        if let Some(cell) = self.cell.filter(|_| session::is_recording()) {
            catch_own_panic("a poll ended", || self.record(cell, elapsed));
        }
        if self.is_last {
            let builder = self.builder.as_deref_mut();
            catch_own_panic("a future ended", || {
                self.state.finish(builder, Ending::Returned);
            });
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "the number of a name")]
    fn record(&self, cell: &StatCell, elapsed: i64) {
        let ended = EndedScope {
            name: cell.id.get() as u32,
            serial: self.serial,
            parent: self.outer,
            start: self.start,
            elapsed,
            ending: RecordEnding::Returned,
            cuda: 0,
        };
        let future = self.state.running.as_ref();
        let record = future.and_then(|running| running.record.as_deref());
        session::close_poll(&ended, record.map_or(0, FutureRecord::serial));
    }

    fn pop(&mut self, state: &ThreadState, elapsed: i64) {
        let top = state.top.get();
        if top == local::ENDED {
            return;
        }
        state.top.set(self.outer);
        state.floor.set(self.outer_floor);
        if top == self.serial {
            if let Some(running) = &mut self.state.running {
                running.children += state.children.get();
            }
        } else if let Some(cell) = self.cell {
            // The poll left a guard open, and what its children took went to that one.
            cell.count_disordered();
            local::forget_above(self.serial);
        }
        state.children.set(self.outer_children + elapsed);
        if let Some(cell) = self.cell {
            cell.leave_poll(self.serial);
        }
    }
}

impl Drop for PollGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_open {
            self.close();
        }
    }
}
