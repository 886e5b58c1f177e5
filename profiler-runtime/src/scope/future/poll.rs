//! One poll of a measured future.
//!
//! As for other scopes, a fast path opens and closes the polls of ordinary futures: those without arguments, a GPU time, a
//! logger or a session. While it is used, the first poll keeps what it knows of the future in its guard. A future that is
//! ready at once is counted from there, and never has a [`Progress`].

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::thread::panicking;

use profiler_host::diagnostics::catch_own_panic;
use profiler_host::sync::ReentrancyGuard;

use super::super::builder::ScopeBuilder;
use super::super::handle::Handle;
use super::super::probe::Sample;
use super::super::slow::maintain;
use super::{FutureState, InPlaceScope, Progress};
use crate::clock::{elapsed, now, read_counter};
use crate::cuda::nvtx::{self, FutureRange};
use crate::cuda::{self, Begun, TaskGpuScope};
use crate::local::{self, Innermost, NoCell, Place, SharedScope, ThreadState, slot_index};
use crate::own_cost::{SLOW_CLOSINGS, SLOW_OPENINGS};
use crate::session::{self, EndedScope, FutureRecord, RecordEnding};
use crate::stats::{Ending, StatCell};
use crate::switch::SiteDecision;

/// Guards one poll: an open scope of the polling thread, which closes also if the poll panics.
///
/// It is on the stack at each level of nested futures while the inner ones are polled, so it is small, and the functions
/// that open and close it are never inlined: their stack frames are gone by then.
#[allow(
    clippy::struct_excessive_bools,
    reason = "facts that are independent of each other"
)]
pub(super) struct PollGuard<'a> {
    state: &'a mut FutureState,
    builder: Option<&'a mut ScopeBuilder<'static>>,
    /// `None` if the thread has no cells.
    cell: Option<&'static StatCell>,
    start: u64,
    serial: u64,
    /// The value of `innermost` that the poll replaced.
    outer_serial: Innermost,
    outer_child_ticks: i64,
    outer_poll: u64,
    /// The position of the future among the open GPU scopes of the thread; 0 if it is not one of them.
    cuda_place: u64,
    /// The serial of the entered argument `parent`; 0 without one.
    entered: u64,
    /// `false` if the future is not measured, or has finished.
    is_open: bool,
    /// `true` if the poll was opened on the fast path.
    is_ordinary: bool,
    /// `true` if this is the first poll of an ordinary future, which has no `progress` yet.
    is_first: bool,
    /// `true` if no other scope of the name was open around the poll.
    outermost: bool,
    /// `true` if this poll completed the future.
    pub(super) is_last: bool,
}

/// Guards the only poll of a future that never waits: an `async fn` without `.await`.
#[derive(Debug)]
#[must_use = "the poll ends when its guard is dropped"]
pub struct OnlyPoll<'a>(Option<PollGuard<'a>>);

/// Opens the only poll of a future. The caller drops the scope after the guard.
#[inline(always)]
pub fn only_poll(scope: &mut impl InPlaceScope) -> OnlyPoll<'_> {
    let parts = scope.parts();
    // Two ways to return: while measuring is off, one field is written.
    if parts.0.decision.is_none() {
        return OnlyPoll(None);
    }
    let mut poll = OnlyPoll(Some(PollGuard::new(parts)));
    if let Some(guard) = &mut poll.0 {
        guard.is_last = true;
        guard.enter();
    }
    poll
}

impl<'a> PollGuard<'a> {
    /// Returns the guard of a poll that has not begun.
    #[inline(always)]
    pub(super) fn new(
        (state, builder): (&'a mut FutureState, Option<&'a mut ScopeBuilder<'static>>),
    ) -> Self {
        Self {
            state,
            builder,
            cell: None,
            start: 0,
            serial: 0,
            outer_serial: Innermost::NONE,
            outer_child_ticks: 0,
            outer_poll: 0,
            cuda_place: 0,
            entered: 0,
            is_open: false,
            is_ordinary: false,
            is_first: false,
            outermost: false,
            is_last: false,
        }
    }

    /// Opens the scope of the future as the innermost one of this thread. Reads the clock last.
    // Apart from `new`, so that the guard is not moved.
    #[inline(always)]
    pub(super) fn enter(&mut self) {
        if let Some(decision) = self.state.decision {
            self.open(decision);
        }
    }

    #[inline(never)]
    fn open(&mut self, decision: SiteDecision) {
        // Check `panicking()` first: few registers are saved across the call.
        let may_be_ordinary = !panicking() && !session::is_recording() && self.is_plain();
        if !(may_be_ordinary
            && local::with_state(|state| self.open_fast(state, decision)) == Some(true))
        {
            self.open_slow(decision);
        }
    }

    /// Returns `true` if the future has nothing that the fast path leaves out, apart from flags of its decision.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        let has_plain_builder = self
            .builder
            .as_ref()
            .is_none_or(|builder| builder.is_plain());
        let progress = self.state.progress.as_ref();
        has_plain_builder && progress.is_none_or(Progress::is_plain)
    }

    /// Opens the poll, unless the slow path must do it. Reads the clock last.
    #[inline(always)]
    fn open_fast(&mut self, state: &ThreadState, decision: SiteDecision) -> bool {
        // There is no cell for a decision with a flag, and none directly inside an entry with a link.
        let Some(cell) = state.cell_at(slot_index(decision.raw()) as usize) else {
            return false;
        };
        self.serial = state.last_serial.get() + 1;
        state.last_serial.set(self.serial);
        self.outer_serial = state.innermost.replace(Innermost::new(self.serial));
        self.outer_poll = state.innermost_poll.replace(self.serial);
        self.outer_child_ticks = state.child_ticks.get();
        self.outermost = cell.enter_poll(self.serial);
        self.is_first = self.state.progress.is_none();
        if self.is_first {
            cell.begin_future();
        }
        self.cell = Some(cell);
        self.is_ordinary = true;
        self.is_open = true;
        self.start = read_counter();
        true
    }

    #[cold]
    #[inline(never)]
    fn open_slow(&mut self, decision: SiteDecision) {
        let mut sample = Sample::of_next();
        let cell = local::cell_outside(decision.id());
        let is_reentrant = cell.is_err_and(|reason| reason == NoCell::Reentrant);
        self.cell = cell.ok();
        let parent = self.builder.as_ref().map(|builder| &builder.args.parent);
        self.entered = parent.map_or(0, Handle::enter_unguarded);
        let is_first = self.state.progress.is_none();
        let (range, cuda, record) = if is_first {
            sample.without(|| self.begin(decision, is_reentrant))
        } else {
            (FutureRange::NONE, Err(Begun::NoDriver), None)
        };
        // Last, as for any scope.
        self.start = now();
        self.state.progress.get_or_insert_with(|| Progress {
            unwinding: panicking(),
            cuda,
            range,
            record,
            ..Progress::new(self.start, true)
        });
        self.is_open = true;
        local::with_state(|state| self.push(state, is_first));
        let progress = self.state.progress.as_ref();
        let task = progress.and_then(|progress| progress.cuda.as_ref().ok());
        let place = task.and_then(|task| cuda::push_poll(self.serial, task));
        self.cuda_place = place.unwrap_or(0);
        if decision.has_thread_time() {
            local::begin_thread_time(self.serial, self.outer_serial.serial());
            // What that took is not the future's.
            self.start = now();
            if let (true, Some(progress)) = (is_first, &mut self.state.progress) {
                progress.first_poll = self.start;
            }
        }
        sample.end(&SLOW_OPENINGS);
    }

    /// Begins the range, the GPU side and the record of a future at its first poll.
    fn begin(
        &mut self,
        decision: SiteDecision,
        is_reentrant: bool,
    ) -> (
        FutureRange,
        Result<TaskGpuScope, Begun>,
        Option<Box<FutureRecord>>,
    ) {
        let (mut gpu, shapes, step) = match self.builder.as_deref_mut() {
            Some(builder) => (
                builder.args.gpu.take(),
                builder.args.shapes.take(),
                builder.request.step,
            ),
            None => (None, None, None),
        };
        if is_reentrant {
            return (FutureRange::NONE, Err(Begun::NoDriver), None);
        }
        // Right before the GPU side, as for any scope.
        let range = if decision.has_ranges() {
            nvtx::start(decision, step)
        } else {
            FutureRange::NONE
        };
        let cuda = if decision.is_cuda() || gpu.is_some() {
            cuda::begin_task(decision.id(), gpu.as_mut())
        } else {
            Err(Begun::NoDriver)
        };
        if let (true, Ok(task)) = (decision.has_ranges(), &cuda) {
            cuda::name_stream_of_task(task, decision.id());
        }
        (range, cuda, FutureRecord::begin(local::innermost(), shapes))
    }

    fn push(&mut self, state: &ThreadState, is_first: bool) {
        if state.innermost.get() == Innermost::ENDED {
            return;
        }
        self.serial = state.last_serial.get() + 1;
        state.last_serial.set(self.serial);
        self.outer_serial = state.innermost.replace(Innermost::new(self.serial));
        self.outer_poll = state.innermost_poll.replace(self.serial);
        self.outer_child_ticks = state.child_ticks.get();
        if self.outer_serial.is_linked() {
            local::child_opened(self.outer_serial);
        }
        self.count_caller(is_first);
        let progress = self.state.progress.as_ref();
        if let Some(shared) = progress.and_then(|progress| progress.shared.as_ref()) {
            local::resume_poll(self.serial, shared);
        }
        let Some(cell) = self.cell else { return };
        let outermost = cell.enter_poll(self.serial);
        if is_first {
            if let Some(progress) = &mut self.state.progress {
                progress.outermost = outermost;
            }
            cell.begin_future();
        }
    }

    #[inline(never)]
    fn close(&mut self) {
        let may_be_ordinary = self.is_ordinary && !panicking() && !session::is_recording();
        if !(may_be_ordinary && local::with_state(|state| self.close_fast(state)) == Some(true)) {
            self.close_slow();
        }
    }

    /// Closes the poll of an ordinary future, unless the slow path must do it.
    #[inline(always)]
    fn close_fast(&mut self, state: &ThreadState) -> bool {
        let (Some(cell), true) = (
            self.cell,
            state.innermost.get() == Innermost::new(self.serial),
        ) else {
            return false;
        };
        // If there is a driver by now, the end of the future asks for its stream.
        if self.is_last && (!self.is_first || cuda::is_in_use()) {
            return false;
        }
        let end = read_counter();
        let elapsed = elapsed(self.start, end);
        let children = state.child_ticks.get() - self.outer_child_ticks;
        state.innermost.set(self.outer_serial);
        state.innermost_poll.set(self.outer_poll);
        state.child_ticks.set(self.outer_child_ticks + elapsed);
        cell.leave_poll(self.serial);
        if self.is_last {
            self.state.decision = None;
            let needs_maintenance = cell.count(elapsed, elapsed - children, self.outermost);
            cell.count_future(elapsed);
            if needs_maintenance {
                maintain(cell);
            }
        } else {
            let progress = self.progress();
            progress.last_end = end;
            progress.polled += elapsed;
            progress.children += children;
        }
        true
    }

    /// Returns the state of the future, which begins with this poll if there is none.
    fn progress(&mut self) -> &mut Progress {
        let begin = || Progress::new(self.start, self.outermost);
        let progress = &mut self.state.progress;
        if progress.is_none() {
            // `get_or_insert_with` alone would keep a path here that drops what was there before.
            mem::forget(progress.replace(begin()));
        }
        progress.get_or_insert_with(begin)
    }

    #[cold]
    #[inline(never)]
    fn close_slow(&mut self) {
        if self.is_first {
            self.progress();
        }
        let end = now();
        let elapsed = elapsed(self.start, end);
        let sample = Sample::begin(self.serial);
        self.end_thread_time(elapsed);
        if let Some(progress) = &mut self.state.progress {
            progress.last_end = end;
            progress.polled += elapsed;
            progress.panicked |= panicking() && !progress.unwinding;
        }
        let place = local::place(self.outer_serial);
        local::with_state(|state| self.pop(state, elapsed));
        if self.cuda_place != 0 {
            catch_own_panic("a poll ended", || {
                cuda::pop_poll(self.serial, self.cuda_place);
            });
        }
        if let Some(cell) = self.cell.filter(|_| session::is_recording()) {
            catch_own_panic("a poll ended", || self.record(cell, place, elapsed));
        }
        sample.end(&SLOW_CLOSINGS);
        if self.is_last {
            let builder = self.builder.as_deref_mut();
            catch_own_panic("a future ended", || {
                self.state.finish(builder, Ending::Returned);
            });
        }
        if self.entered != 0 {
            local::leave(self.entered);
        }
        if let Some(cell) = self.cell {
            local::give_back(cell);
        }
    }

    /// Counts the thread time of the poll, which took `elapsed` ticks.
    fn end_thread_time(&self, elapsed: i64) {
        let is_measured = self
            .state
            .decision
            .is_some_and(SiteDecision::has_thread_time);
        let time = is_measured.then(|| local::end_thread_time(self.serial, elapsed));
        let progress = self.state.progress.as_ref();
        if let (Some(Some(time)), Some(cell), false) = (time, self.cell, local::has_ended()) {
            cell.count_thread_time(
                time.total,
                time.own,
                progress.is_none_or(|progress| progress.outermost),
            );
        }
    }

    /// Restores the scope around the poll.
    fn pop(&mut self, state: &ThreadState, elapsed: i64) {
        let innermost = state.innermost.get();
        if innermost == Innermost::ENDED {
            return;
        }
        if innermost != Innermost::new(self.serial) {
            self.suspend_shared();
            if self.state.decision.is_some_and(SiteDecision::has_ranges) {
                nvtx::pop_inside(self.serial);
            }
        }
        state.innermost.set(self.outer_serial);
        state.innermost_poll.set(self.outer_poll);
        if innermost.serial() == self.serial {
            if let Some(progress) = &mut self.state.progress {
                progress.children += state.child_ticks.get() - self.outer_child_ticks;
            }
        } else if let Some(cell) = self.cell {
            // The poll left a guard open. `child_ticks` has the children of that scope, so those of the poll are not known.
            cell.count_disordered();
            local::presume_leaked_inside(self.serial);
        }
        state.child_ticks.set(self.outer_child_ticks + elapsed);
        if let Some(cell) = self.cell {
            cell.leave_poll(self.serial);
        }
        let progress = self.state.progress.as_ref();
        if progress.is_some_and(|progress| progress.call.is_some()) {
            local::callers::suspended(self.serial);
        }
        if self.outer_serial.is_linked() {
            local::child_closed(self.outer_serial);
        }
        state.skip_left_handles();
    }

    /// Notes that the scopes inside the poll are called by the future.
    fn count_caller(&mut self, is_first: bool) {
        let (Some(decision), Some(progress)) = (self.state.decision, &mut self.state.progress)
        else {
            return;
        };
        // The lock of the call tree, which the thread may hold there.
        if ReentrancyGuard::is_entered() {
            return;
        }
        let name = decision.id();
        if is_first && decision.counts_callers() {
            progress.call = local::callers::opened(name, self.serial, self.outer_serial);
        } else if let Some(call) = progress.call {
            local::callers::resumed(name, self.serial, self.outer_serial, call);
        }
    }

    /// Suspends what the future shares with other threads until the next poll.
    #[cold]
    fn suspend_shared(&mut self) {
        let shared: Option<Arc<SharedScope>> = local::suspend_poll(self.serial);
        if let (Some(shared), Some(progress)) = (shared, &mut self.state.progress) {
            cuda::end_segment_of(&shared, self.serial, progress.last_end);
            progress.shared = Some(shared);
        }
    }

    /// Records the poll for the sessions.
    fn record(&self, cell: &StatCell, place: Place, elapsed: i64) {
        let ended = EndedScope {
            name: cell.name(),
            serial: self.serial,
            place,
            shared: 0,
            start: self.start,
            elapsed,
            ending: RecordEnding::Returned,
            cuda: 0,
        };
        let progress = self.state.progress.as_ref();
        let record = progress.and_then(|progress| progress.record.as_deref());
        session::close_poll(&ended, record.map_or(0, FutureRecord::serial));
    }
}

impl fmt::Debug for PollGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollGuard").finish_non_exhaustive()
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
