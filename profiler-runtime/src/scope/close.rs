//! The slow path that closes a scope, and where a closed scope goes.

use std::thread::panicking;

use super::open::{
    CALLERS, CUDA, Counted, DETACHED, IN_LINKED, LOGGED, NO_CONTEXT, NO_STREAM, OpenScope, PART,
    RANGE, RECORDED, SLOW_END, STEP, THREAD_TIME, UNWINDING,
};
use crate::clock::{elapsed, now};
use crate::collect;
use crate::cuda::{self, CpuSpan, nvtx};
use crate::diagnostics::catch_own_panic;
use crate::local::callers::{self, CountedCall};
use crate::local::{self, LINKED, Place, ThreadState};
use crate::log::LogRequest;
use crate::name;
use crate::session::{self, EndedScope, RecordEnding};
use crate::stats::{Ending, StatCell};

/// Closes a scope on the slow path.
#[cold]
#[inline(never)]
pub(super) fn end_slowly(open: &OpenScope) {
    catch_own_panic("a scope was closed", || {
        let closed = open.close();
        let log = open.has(LOGGED).then(|| LogRequest::new(1));
        open.dispatch(&closed, log);
    });
}

/// Closes a scope that its own logger logs, on the slow path.
#[cold]
#[inline(never)]
pub(super) fn end_logged_slowly(open: &OpenScope, log: LogRequest) {
    catch_own_panic("a scope was closed", || {
        let closed = open.close();
        open.dispatch(&closed, Some(log));
    });
}

/// Closes a scope that is one part of a call, and counts nothing but its GPU time and its thread time.
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) fn end_part(open: &OpenScope) -> Option<super::Part> {
    catch_own_panic("a scope was closed", || {
        let closed = open.close();
        open.dispatch(&closed, None);
        super::Part {
            end: closed.span.end,
            elapsed: closed.span.elapsed,
            own: closed.own,
            panicked: closed.panicked,
        }
    })
}

/// Counts a call that was made from a call of its own name, or was presumed leaked. Returns `true` if it counts as an
/// outermost call.
#[cold]
#[inline(never)]
pub(super) fn end_recursive(cell: &'static StatCell, elapsed: i64, own: i64) -> bool {
    let outermost = cell.leave_presumed_leaked();
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
pub(super) struct Closed {
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
    /// Closes and counts the scope.
    fn close(&self) -> Closed {
        // Before the clock, as it began after it: no thread time is longer than the elapsed time.
        let thread_time = self
            .has(THREAD_TIME)
            .then(|| local::end_thread_time(self.serial()));
        let end = now();
        let elapsed = elapsed(self.start, end);
        let panicked = panicking() && !self.has(UNWINDING);
        let mut shared = 0;
        // Before the scope closes, which may remove a handle that was left inside it.
        let place = local::place(self.outer_serial);
        let (outermost, own) = if self.has(PART) && (self.has(DETACHED) || local::has_ended()) {
            (true, elapsed)
        } else if self.has(DETACHED) {
            self.count_detached(elapsed, panicked);
            (true, elapsed)
        } else if local::has_ended() {
            self.count_after_thread_end(elapsed, panicked);
            (true, elapsed)
        } else {
            shared = self.close_shared(end);
            self.close_attached(elapsed, panicked)
        };
        let call = if !self.has(CALLERS) {
            CountedCall::NONE
        } else if self.has(DETACHED) {
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
        Closed {
            span,
            own,
            panicked,
            shared,
            place,
        }
    }

    /// Ends what the scope shares with other threads, and counts the time in which their scopes covered it as that of
    /// children. Returns the id, or 0 if it shares nothing.
    pub(super) fn close_shared(&self, end: u64) -> u64 {
        let serial = self.serial();
        if local::innermost() == serial {
            return 0;
        }
        let Some(shared) = local::disown(serial) else {
            return 0;
        };
        let covered = shared.coverage.end(end);
        local::with_state(|state| {
            if state.innermost.get() == serial | LINKED {
                state.child_ticks.set(state.child_ticks.get() + covered);
                state.innermost.set(serial);
            }
        });
        shared.id
    }

    /// Closes a scope that is part of the thread's state. Returns `true` if no other scope of its name is around it, and its
    /// self time.
    fn close_attached(&self, elapsed: i64, panicked: bool) -> (bool, i64) {
        let serial = self.serial();
        let mut own = elapsed;
        let counted = local::with_state(|state| match state.innermost.get() {
            innermost if innermost == serial => {
                own = self.own_ticks(state, elapsed);
                self.restore_outer(state, elapsed);
                let outermost =
                    self.cell.leave(serial) || !self.has(PART) && self.cell.leave_presumed_leaked();
                self.count_call(elapsed, own, outermost)
            }
            innermost => {
                // Dropped out of order: before a younger guard, or after an older one. The elapsed time is exact. The
                // time of the children is not known, so all of it counts as the scope's own.
                self.cell.count_disordered();
                // Restore the outer scope if only younger scopes are open inside. A guard that was opened before the
                // current poll must not restore: the end of the poll does.
                if serial < innermost & !LINKED && serial > state.innermost_poll.get() {
                    self.restore_outer(state, elapsed);
                    local::presume_leaked_inside(serial);
                }
                self.count_call(elapsed, elapsed, self.leave_late())
            }
        });
        if self.has(IN_LINKED) {
            local::child_closed(self.outer_serial);
        }
        local::with_state(ThreadState::skip_left_handles);
        if counted
            .as_ref()
            .is_some_and(|counted| counted.needs_maintenance)
        {
            maintain(self.cell);
        }
        if panicked && !self.has(PART) {
            self.cell.count_ending(Ending::Panicked);
        }
        (counted.is_none_or(|counted| counted.outermost), own)
    }

    /// Notes in the cell that the scope ends out of order. Returns `true` if it counts as an outermost call.
    pub(super) fn leave_late(&self) -> bool {
        if !self.has(PART) {
            return self.cell.leave_late(self.serial());
        }
        // A part is never presumed leaked: what is, is another scope of the name.
        self.cell.leave_poll(self.serial());
        self.cell.outermost() == 0
    }

    /// Counts the call, unless the scope is one part of it.
    fn count_call(&self, elapsed: i64, own: i64, outermost: bool) -> Counted {
        if !self.has(PART) {
            return self.count(elapsed, own, outermost);
        }
        if outermost {
            self.cell.end_polling();
        }
        Counted {
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

    /// Returns the cell if this thread may write to it.
    pub(super) fn writable_cell(&self) -> Option<&'static StatCell> {
        (!self.has(DETACHED) && !local::has_ended()).then_some(self.cell)
    }

    /// Passes a closed scope on: to the GPU's resolver if it has a GPU time, else to the collector if it is logged; to the
    /// session if one records it; and to the environment's session if it ends a step.
    pub(super) fn dispatch(&self, closed: &Closed, log: Option<LogRequest>) {
        let (cell, span) = (self.writable_cell(), closed.span);
        // First, so that memory allocated below does not count as the scope's.
        let recorded = self.has(RECORDED).then(|| self.ended(closed));
        if self.has(NO_STREAM) {
            cuda::count_without_stream(cell, span.elapsed);
        }
        if self.has(CUDA) {
            cuda::end(self.serial(), span, cell, log);
        } else if self.has(NO_CONTEXT) && cuda::context_became_current() {
            cuda::end_without_context(self.id(), span, cell, log);
        } else if let Some(log) = log {
            collect::log(cell, self.id(), (span.end, span.elapsed), log);
        }
        // Right after the GPU side.
        if self.has(RANGE) {
            nvtx::pop(self.serial());
        }
        // After the GPU side has closed, so that the session's work is not between the two events.
        match recorded {
            Some(Some(ended)) => session::close(&ended),
            Some(None) => session::lose(),
            None => {}
        }
        // Set for all scopes whose cell is borrowed.
        if let (true, Some(cell)) = (self.has(SLOW_END), cell) {
            local::give_back(cell);
        }
        if self.has(STEP) && span.outermost {
            session::environment::step();
        }
    }

    /// Returns the scope as sessions record it, or `None` if it is detached.
    fn ended(&self, closed: &Closed) -> Option<EndedScope> {
        if self.has(DETACHED) {
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
            cuda: if self.has(CUDA) {
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
