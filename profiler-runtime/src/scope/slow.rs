//! The slow path that opens and closes a scope, and where a closed scope goes.

use std::sync::Arc;
use std::thread::panicking;

use profiler_host::diagnostics::catch_own_panic;
use profiler_host::sync::ReentrancyGuard;

use super::open::{CountOutcome, OpenScope, ScopeArgs, begin_gpu};
use super::probe::Sample;
use super::serial::Flags;
use crate::clock::{elapsed, has_counter, now};
use crate::collect;
use crate::cuda::{self, BoundCall, CpuSpan, nvtx};
use crate::local::callers::{self, CountedCall};
use crate::local::{self, Innermost, NoCell, Place, SharedScope, ThreadState};
use crate::log_record::LogRequest;
use crate::losses;
use crate::name;
use crate::own_cost::{SLOW_CLOSINGS, SLOW_OPENINGS};
use crate::session::{self, EndedScope, RecordEnding};
use crate::stats::{Ending, StatCell};
use crate::switch::SiteDecision;

#[cfg(test)]
thread_local! {
    /// How many scopes this thread has opened on the slow path.
    pub(super) static SLOWLY_OPENED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

impl OpenScope {
    /// Opens a scope on the slow path. Returns `None` within the profiler itself, where calls are not measured. Reads the
    /// clock last. `step` is the step that the call gives.
    #[cold]
    pub(crate) fn slow(
        decision: SiteDecision,
        step: Option<u64>,
        args: &mut ScopeArgs,
    ) -> Option<Self> {
        #[cfg(test)]
        SLOWLY_OPENED.set(SLOWLY_OPENED.get() + 1);
        let mut sample = Sample::of_next();
        local::sweep();
        let mut open = match local::cell_outside(decision.id()) {
            Ok(cell) => local::with_state(|state| Self::push(state, cell))?,
            Err(NoCell::Unavailable) => Self::detached(decision),
            Err(NoCell::Reentrant) => {
                losses::count_refused();
                return None;
            }
        };
        let is_attached = !open.has(Flags::DETACHED);
        let serial = open.serial();
        let in_linked = open.outer_serial.is_linked();
        let counts_callers = decision.counts_callers();
        if is_attached && counts_callers {
            local::callers::opened(decision.id(), serial, open.outer_serial);
        }
        // Before the GPU side opens, so that the session's work is not between the two events.
        let counts_memory = is_attached && decision.is_recorded() && {
            let shapes = std::mem::take(&mut args.shapes);
            session::open(decision.id(), serial, open.outer_serial, shapes)
        };
        // Right before the GPU side, so that the range is as long as the times of the scope.
        let has_range = is_attached && decision.has_ranges() && nvtx::push(decision, serial, step);
        let wants_cuda = is_attached && (decision.is_cuda() || args.gpu.is_some());
        let begun = if wants_cuda {
            sample.without(|| begin_gpu(serial, decision.id(), args.gpu.as_mut()).0)
        } else {
            Flags::NONE
        };
        if has_range && begun == Flags::CUDA {
            cuda::name_stream(serial, decision.id());
        }
        if counts_memory {
            session::opened(serial);
        }
        let wants_thread_time = is_attached && decision.has_thread_time();
        let must_end_slowly = !has_counter() || is_attached && local::is_borrowed(open.cell);
        for flag in [
            begun,
            Flags::LOGGED.when(decision.is_logged()),
            Flags::UNWINDING.when(panicking()),
            Flags::SLOW_END.when(must_end_slowly),
            Flags::RECORDED.when(decision.is_recorded()),
            Flags::DETAILED.when(decision.is_recorded()),
            Flags::STEP.when(decision.is_step()),
            Flags::IN_LINKED.when(in_linked),
            Flags::THREAD_TIME.when(wants_thread_time),
            Flags::CALLERS.when(counts_callers),
            Flags::RANGE.when(has_range),
        ] {
            open.serial.add(flag);
        }
        // Last but for the clock: from here on, the scope covers its parent on another thread.
        if in_linked {
            local::child_opened(open.outer_serial);
        }
        if wants_thread_time {
            // Before the clock is read, as reading the thread's takes longer than many calls. If it is not measured, closing
            // finds no entry.
            local::begin_thread_time(serial, open.outer_serial.serial());
        }
        sample.end(&SLOW_OPENINGS);
        open.start = now();
        Some(open)
    }
}

/// Closes a scope on the slow path.
#[cold]
#[inline(never)]
pub(super) fn end_slowly(open: &OpenScope) {
    catch_own_panic("a scope was closed", || {
        let log = open.has(Flags::LOGGED).then(|| LogRequest::new(1));
        open.close_and_dispatch(log);
    });
}

/// Closes a scope that its own logger logs, on the slow path.
#[cold]
#[inline(never)]
pub(super) fn end_logged_slowly(open: &OpenScope, log: LogRequest) {
    catch_own_panic("a scope was closed", || {
        open.close_and_dispatch(Some(log));
    });
}

/// Closes a scope that is one part of a call, and counts nothing but its GPU time and its thread time.
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) fn end_part(open: &OpenScope) -> Option<super::Part> {
    catch_own_panic("a scope was closed", || {
        let closed = open.close_and_dispatch(None);
        super::Part {
            end: closed.span.end,
            elapsed: closed.span.elapsed,
            own: closed.own,
            panicked: closed.panicked,
            outermost: closed.span.outermost,
        }
    })
}

/// Counts a call that was made from a call of its own name, or was presumed leaked. Returns `true` if it counts as an
/// outermost call.
#[cold]
#[inline(never)]
pub(super) fn end_recursive(cell: &'static StatCell, elapsed: i64, own: i64) -> bool {
    let outermost = name::settle_moved(cell) || cell.leave_presumed_leaked();
    if cell.count(elapsed, own, outermost) {
        maintain(cell);
    }
    outermost
}

/// Records a time that [`StatCell::count_outermost`] did not record.
#[cold]
#[inline(never)]
pub(super) fn record_slowly(cell: &'static StatCell, elapsed: i64) {
    if cell.record_slowly(elapsed) {
        maintain(cell);
    }
}

/// Maintains a cell: see [`StatCell::maintain`].
#[cold]
#[inline(never)]
pub(super) fn maintain(cell: &StatCell) {
    catch_own_panic("counts were moved", || {
        // If it is put off, the next sweep finds the cell.
        name::maintain(cell);
    });
}

/// The CPU side of a scope that has closed.
pub(super) struct ClosedScope {
    pub(super) span: CpuSpan,
    /// The self time.
    #[cfg_attr(
        not(all(feature = "tracing-layer", not(feature = "strip"))),
        expect(dead_code, reason = "for parts of a call")
    )]
    pub(super) own: i64,
    /// `true` if a panic ended the scope.
    pub(super) panicked: bool,
    /// The id of the scope's [`SharedScope`](local::SharedScope); 0 if it has none.
    pub(super) shared: u64,
    pub(super) place: Place,
}

impl OpenScope {
    /// Closes and counts the scope, and passes it on.
    fn close_and_dispatch(&self, log: Option<LogRequest>) -> ClosedScope {
        let mut sample = Sample::begin(self.serial());
        let (closed, bound) = self.close();
        // The GPU's side is sampled apart, and the step of a session is not what measuring the call takes.
        let is_counted_elsewhere = self.serial.flags(Flags::CUDA.and(Flags::STEP)) != Flags::NONE;
        if is_counted_elsewhere {
            sample.without(|| self.dispatch_closed(&closed, bound, log));
        } else {
            self.dispatch_closed(&closed, bound, log);
        }
        sample.end(&SLOW_CLOSINGS);
        closed
    }

    /// Closes and counts the scope. Returns what it shared between threads too, if streams were bound to it.
    fn close(&self) -> (ClosedScope, Option<BoundCall>) {
        let end = now();
        let elapsed = elapsed(self.start, end);
        // The thread's clock is read outside of the two readings of the other clock, whose time does not contain that.
        let thread_time = self
            .has(Flags::THREAD_TIME)
            .then(|| local::end_thread_time(self.serial(), elapsed));
        let panicked = panicking() && !self.has(Flags::UNWINDING);
        let mut shared = None;
        // Before the scope closes, which may remove a handle that was left inside it.
        let place = local::place(self.outer_serial);
        let (outermost, own) =
            if self.has(Flags::PART) && (self.has(Flags::DETACHED) || local::has_ended()) {
                (true, elapsed)
            } else if self.has(Flags::DETACHED) {
                self.count_detached(elapsed, panicked);
                (true, elapsed)
            } else if local::has_ended() {
                self.count_after_thread_end(elapsed, panicked);
                local::end_elsewhere(self.serial(), self.id());
                (true, elapsed)
            } else if !local::is_own(self.serial()) {
                self.count_elsewhere(elapsed, panicked);
                local::end_elsewhere(self.serial(), self.id());
                (true, elapsed)
            } else {
                let covered;
                (shared, covered) = self.close_shared(end);
                name::count_covered(self.id(), covered);
                self.close_attached(elapsed, panicked)
            };
        let call = if !self.has(Flags::CALLERS) {
            CountedCall::NONE
        } else if self.has(Flags::DETACHED) {
            callers::finished(self.id(), None, (elapsed, own), outermost)
        } else {
            callers::closed(self.id(), self.serial(), (elapsed, own), outermost)
        };
        if let (Some(Some(time)), Some(cell)) = (thread_time, self.writable_cell()) {
            cell.count_thread_time(time.total, time.own, outermost);
        }
        let span = CpuSpan {
            end,
            elapsed,
            outermost,
            call,
        };
        let bound = shared
            .as_ref()
            .filter(|_| !self.has(Flags::CUDA))
            .and_then(|shared| BoundCall::of(shared, self.serial()));
        let closed = ClosedScope {
            span,
            own,
            panicked,
            shared: shared.as_ref().map_or(0, |shared| shared.id),
            place,
        };
        if shared.is_some() {
            // The memory is not the program's.
            let _reentrancy = ReentrancyGuard::try_enter();
            drop(shared);
        }
        (closed, bound)
    }

    /// Ends what the scope shares with other threads, and counts the time in which their scopes covered it as that of
    /// children. Returns what it shared, and that time in ticks.
    pub(super) fn close_shared(&self, end: u64) -> (Option<Arc<SharedScope>>, i64) {
        let serial = self.serial();
        if local::innermost() == Innermost::new(serial) {
            return (None, 0);
        }
        let Some(shared) = local::disown(serial) else {
            return (None, 0);
        };
        cuda::end_segment_of(&shared, serial, end);
        let covered = shared.coverage.end(end);
        shared.end(self.id());
        let counted = local::with_state(|state| {
            let is_innermost = state.innermost.get() == Innermost::linked(serial);
            if is_innermost {
                state.child_ticks.set(state.child_ticks.get() + covered);
                state.innermost.set(Innermost::new(serial));
            }
            is_innermost
        });
        let is_counted = counted == Some(true);
        (Some(shared), if is_counted { covered } else { 0 })
    }

    /// Closes a scope that is part of the thread's state. Returns `true` if no other scope of its name is around it, and its
    /// self time.
    fn close_attached(&self, elapsed: i64, panicked: bool) -> (bool, i64) {
        let serial = self.serial();
        let mut own = elapsed;
        let counted = local::with_state(|state| match state.innermost.get() {
            innermost if innermost == Innermost::new(serial) => {
                own = self.own_ticks(state, elapsed);
                self.restore_outer(state, elapsed);
                let outermost = self.cell.leave(serial)
                    || name::settle_moved(self.cell)
                    || !self.has(Flags::PART) && self.cell.leave_presumed_leaked();
                self.count_call(elapsed, own, outermost)
            }
            innermost => {
                // Dropped out of order: before a younger guard, or after an older one. The elapsed time is exact. The
                // time of the children is not known, so all of it counts as the scope's own.
                self.cell.count_disordered();
                name::settle_moved(self.cell);
                // Restore the outer scope if only younger scopes are open inside. A guard that was opened before the
                // current poll must not restore: the end of the poll does.
                if serial < innermost.serial() && serial > state.innermost_poll.get() {
                    self.restore_outer(state, elapsed);
                    local::presume_leaked_inside(serial);
                }
                self.count_call(elapsed, elapsed, self.leave_late())
            }
        });
        if self.has(Flags::IN_LINKED) {
            local::child_closed(self.outer_serial);
        }
        local::with_state(ThreadState::skip_left_handles);
        if counted
            .as_ref()
            .is_some_and(|counted| counted.needs_maintenance)
        {
            maintain(self.cell);
        }
        if panicked && !self.has(Flags::PART) {
            self.cell.count_ending(Ending::Panicked);
        }
        (counted.is_none_or(|counted| counted.outermost), own)
    }

    /// Notes in the cell that the scope ends out of order. Returns `true` if it counts as an outermost call.
    pub(super) fn leave_late(&self) -> bool {
        if !self.has(Flags::PART) {
            return self.cell.leave_late(self.serial());
        }
        // A part is never presumed leaked. If the cell knows of such a scope, it is another one of the name.
        self.cell.leave_poll(self.serial());
        self.cell.outermost() == 0
    }

    /// Counts the call, unless the scope is one part of it.
    fn count_call(&self, elapsed: i64, own: i64, outermost: bool) -> CountOutcome {
        if !self.has(Flags::PART) {
            return self.count(elapsed, own, outermost);
        }
        if outermost {
            self.cell.end_polling();
        }
        CountOutcome {
            needs_maintenance: false,
            outermost,
        }
    }

    /// Counts a scope whose thread has ended while it was open. The cell may have another writer by now.
    fn count_after_thread_end(&self, elapsed: i64, panicked: bool) {
        if let Some(name) = name::by_id(self.id()) {
            name.count_after_thread_end(|cell| count_alone(cell, elapsed, panicked));
        }
    }

    fn count_detached(&self, elapsed: i64, panicked: bool) {
        if let Some(name) = name::by_id(self.id()) {
            name.count_without_cell(|cell| count_alone(cell, elapsed, panicked));
        }
    }

    /// Counts a scope that a coroutine opened on another thread. The cell is that thread's.
    fn count_elsewhere(&self, elapsed: i64, panicked: bool) {
        if let Some(name) = name::by_id(self.id()) {
            name.count_elsewhere(self.cell, self.serial(), |cell| {
                cell.count_disordered();
                count_alone(cell, elapsed, panicked);
            });
        }
    }

    /// Returns the cell if this thread may write to it.
    pub(super) fn writable_cell(&self) -> Option<&'static StatCell> {
        let is_writable = !self.has(Flags::DETACHED) && !local::has_ended();
        (is_writable && local::is_own(self.serial())).then_some(self.cell)
    }

    /// [`dispatch`](Self::dispatch) for a scope to which streams may have been bound.
    #[cold]
    #[inline(never)]
    fn dispatch_closed(
        &self,
        closed: &ClosedScope,
        bound: Option<BoundCall>,
        log: Option<LogRequest>,
    ) {
        let Some(bound) = bound else {
            return self.dispatch(closed, log);
        };
        bound.end(self.id(), closed.span, self.writable_cell(), log);
        let mut rest = *self;
        rest.serial.remove(Flags::NO_CONTEXT.and(Flags::NO_STREAM));
        rest.dispatch(closed, None);
    }

    /// Passes a closed scope on: to the GPU's resolver if it has a GPU time, else to the collector if it is logged; to the
    /// session if one records it; and to the environment's session if it ends a step.
    pub(super) fn dispatch(&self, closed: &ClosedScope, log: Option<LogRequest>) {
        let (cell, span) = (self.writable_cell(), closed.span);
        // First, so that memory allocated below does not count as the scope's.
        let recorded = self.has(Flags::RECORDED).then(|| self.ended(closed));
        if self.has(Flags::NO_STREAM) {
            cuda::count_without_stream(cell, span.elapsed);
        }
        if self.has(Flags::CUDA) {
            cuda::end(self.serial(), span, cell, log);
        } else if self.has(Flags::NO_CONTEXT) {
            self.end_without_context(span, cell, log);
        } else if let Some(log) = log {
            collect::log(cell, self.id(), (span.end, span.elapsed), log);
        }
        // Right after the GPU side, so that the range is as long as the times of the scope.
        if self.has(Flags::RANGE) {
            nvtx::pop(self.serial());
        }
        // After the GPU side has closed, so that the session's work is not between the two events.
        match recorded {
            Some(Some(ended)) => session::close(&ended),
            Some(None) => session::lose(),
            None => {}
        }
        // Set for all scopes whose cell is borrowed.
        if let (true, Some(cell)) = (self.has(Flags::SLOW_END), cell) {
            local::give_back(cell);
        }
        if self.has(Flags::STEP) && span.outermost {
            session::environment::step();
        }
    }

    /// Passes on a scope that began where no context was current: to the GPU's resolver if one is now, else to the collector if it
    /// is logged.
    pub(super) fn end_without_context(
        &self,
        span: CpuSpan,
        cell: Option<&'static StatCell>,
        log: Option<LogRequest>,
    ) {
        if cuda::context_became_current() {
            cuda::end_without_context(self.id(), span, cell, log);
        } else if let Some(log) = log {
            collect::log(cell, self.id(), (span.end, span.elapsed), log);
        }
    }

    /// Returns the scope as sessions record it, or `None` if it is detached.
    fn ended(&self, closed: &ClosedScope) -> Option<EndedScope> {
        if self.has(Flags::DETACHED) {
            return None;
        }
        let serial = self.serial();
        session::ending(serial);
        Some(EndedScope {
            name: self.id(),
            serial,
            place: closed.place,
            shared: closed.shared,
            start: self.start,
            elapsed: closed.span.elapsed,
            ending: if closed.panicked {
                RecordEnding::Panicked
            } else {
                RecordEnding::Returned
            },
            cuda: if self.has(Flags::CUDA) || closed.shared != 0 {
                cuda::key_of(serial)
            } else {
                0
            },
        })
    }
}

/// Counts a call without children or enclosing calls.
fn count_alone(cell: &StatCell, elapsed: i64, panicked: bool) {
    // A new cell needs no maintenance.
    let _ = cell.count(elapsed, elapsed, true);
    if panicked {
        cell.count_ending(Ending::Panicked);
    }
}
