//! An open scope, and the fast path that opens and closes one.
//!
//! The fast path handles ordinary calls and calls no function. A call that is logged, recorded or has a GPU time, and is
//! ordinary otherwise, takes the direct path (`direct.rs`). Anything else takes the slow path: the first call of a name on a
//! thread, a panic, a guard that is dropped out of order. The fast path ends in a tail call of the others, so that it has no
//! registers to save.
//!
//! Which path a call takes costs one comparison each. On opening, a decision with a flag is larger than any id, so that
//! no cell is found for it. On closing, a serial with a flag never equals the innermost one.

use std::thread::panicking;

use super::builder::ScopeArgs;
use super::close::{end_recursive, record_slowly};
use super::direct::{begin_gpu, end_direct};
use crate::clock::{has_counter, now, read_counter, subtract};
use crate::cuda::{self, nvtx};
use crate::local::{self, LINKED, NoCell, ThreadState, slot_index};
use crate::session;
use crate::stats::StatCell;
use crate::switch::SiteDecision;

/// An open scope, with what its opening replaced in the thread's state.
// Copied where it stands on a stack of its own: each is closed once all the same.
#[derive(Clone, Copy)]
pub(crate) struct OpenScope {
    pub(super) cell: &'static StatCell,
    pub(super) start: u64,
    /// The serial of the scope on its thread, and flags.
    pub(super) serial: u64,
    /// The value of `innermost` that the scope replaced.
    pub(super) outer_serial: u64,
    pub(super) outer_child_ticks: i64,
}

/// A default logger logs this call.
pub(super) const LOGGED: u64 = 1 << 61;
/// The thread was panicking when the scope opened.
pub(super) const UNWINDING: u64 = 1 << 62;
/// The thread had no cell when the scope opened: it had ended, or there was no memory. Instead of a serial the scope has
/// the id of its name.
pub(super) const DETACHED: u64 = 1 << 63;
/// The scope must close on the slow path: its start was not read from the counter, or its cell is borrowed.
pub(super) const SLOW_END: u64 = 1 << 60;
/// The scope has a GPU time.
pub(super) const CUDA: u64 = 1 << 59;
/// The scope is on a default stream, and no context was current when it opened.
pub(super) const NO_CONTEXT: u64 = 1 << 58;
/// A session records the scope.
pub(super) const RECORDED: u64 = 1 << 57;
/// The end of the scope ends a step.
pub(super) const STEP: u64 = 1 << 56;
/// No stream was named for the scope.
pub(super) const NO_STREAM: u64 = 1 << 55;
/// The scope was opened directly inside an entry with a link: see [`local::LINKED`], which has the bit above.
pub(super) const IN_LINKED: u64 = 1 << 53;
/// The scope has a thread time.
pub(super) const THREAD_TIME: u64 = 1 << 52;
/// The caller of the scope is counted.
pub(super) const CALLERS: u64 = 1 << 51;
/// The scope is a range in an NVTX tool.
pub(super) const RANGE: u64 = 1 << 50;
/// The scope is one part of a call, which is counted when the last part has ended: see [`super::Part`].
pub(super) const PART: u64 = 1 << 49;
/// A session may remember details of the scope.
const DETAILED: u64 = 1 << 48;
const FLAGS: u64 = LOGGED
    | UNWINDING
    | DETACHED
    | SLOW_END
    | CUDA
    | NO_CONTEXT
    | RECORDED
    | STEP
    | NO_STREAM
    | LINKED
    | IN_LINKED
    | THREAD_TIME
    | CALLERS
    | RANGE
    | PART
    | DETAILED;

/// The result of counting a call.
pub(super) struct Counted {
    /// `true` if [`maintain`] must be called.
    pub(super) needs_maintenance: bool,
    /// `true` if no other scope of the name is open around the call.
    pub(super) outermost: bool,
}

#[cfg(test)]
thread_local! {
    /// How many scopes this thread has opened on the slow path.
    pub(super) static SLOWLY_OPENED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// The cell of detached scopes. It never counts anything.
pub(super) static NO_CELL: StatCell = StatCell::new();

impl OpenScope {
    /// Opens a scope on the fast path. Returns `None` if the slow path must do it. Reads the clock last.
    #[inline(always)]
    pub(crate) fn fast(decision: SiteDecision) -> Option<Self> {
        Self::fast_at(slot_index(decision.raw()) as usize)
    }

    /// [`fast`](Self::fast) for the name with this [`slot_index`].
    #[inline(always)]
    pub(crate) fn fast_at(index: usize) -> Option<Self> {
        local::with_state(|state| {
            let cell = state.cell_at(index)?;
            if state.must_sweep() {
                return None;
            }
            let mut open = Self::push(state, cell);
            open.start = read_counter();
            Some(open)
        })
        .flatten()
    }

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
        local::sweep();
        let mut open = match local::cell(decision.id()) {
            Ok(cell) => local::with_state(|state| Self::push(state, cell))?,
            Err(NoCell::Unavailable) => Self::detached(decision),
            Err(NoCell::Reentrant) => return None,
        };
        let is_attached = !open.has(DETACHED);
        let in_linked = open.outer_serial & LINKED != 0;
        let counts_callers = decision.counts_callers();
        if is_attached && counts_callers {
            local::callers::opened(decision.id(), open.serial, open.outer_serial);
        }
        // Before the GPU side opens, so that the session's work is not between the two events.
        let counts_memory = is_attached && decision.is_recorded() && {
            let shapes = std::mem::take(&mut args.shapes);
            session::open(decision.id(), open.serial, open.outer_serial, shapes)
        };
        // Right before the GPU side too, so that the range is as long as the times of the scope.
        let has_range =
            is_attached && decision.has_ranges() && nvtx::push(decision, open.serial, step);
        let wants_cuda = is_attached && (decision.is_cuda() || args.gpu.is_some());
        let begun = if wants_cuda {
            begin_gpu(open.serial, decision.id(), args.gpu.as_mut()).0
        } else {
            0
        };
        if has_range && begun == CUDA {
            cuda::name_stream(open.serial, decision.id());
        }
        if counts_memory {
            session::opened(open.serial);
        }
        let wants_thread_time = is_attached && decision.has_thread_time();
        let flags = [
            (decision.is_logged(), LOGGED),
            (panicking(), UNWINDING),
            (
                !has_counter() || is_attached && local::is_borrowed(open.cell),
                SLOW_END,
            ),
            (decision.is_recorded(), RECORDED | DETAILED),
            (decision.is_step(), STEP),
            (in_linked, IN_LINKED),
            (wants_thread_time, THREAD_TIME),
            (counts_callers, CALLERS),
            (has_range, RANGE),
        ];
        open.serial |= flags
            .iter()
            .filter(|(is_set, _)| *is_set)
            .fold(begun, |all, (_, flag)| all | flag);
        // Last but for the clock: from here on, the scope covers its parent on another thread.
        if in_linked {
            local::child_opened(open.outer_serial);
        }
        open.start = now();
        if wants_thread_time {
            // After the clock: see `close`. If it is not measured, closing finds no entry.
            local::begin_thread_time(open.serial(), open.outer_serial);
        }
        Some(open)
    }

    #[inline(always)]
    pub(super) fn push(state: &ThreadState, cell: &'static StatCell) -> Self {
        let serial = state.last_serial.get() + 1;
        state.last_serial.set(serial);
        let outer_serial = state.innermost.replace(serial);
        cell.enter(serial);
        let outer_child_ticks = state.child_ticks.get();
        Self {
            cell,
            start: 0,
            serial,
            outer_serial,
            outer_child_ticks,
        }
    }

    /// Returns a scope that is not part of its thread's state.
    fn detached(decision: SiteDecision) -> Self {
        Self {
            cell: &NO_CELL,
            start: 0,
            serial: DETACHED | u64::from(decision.id()),
            outer_serial: 0,
            outer_child_ticks: 0,
        }
    }

    /// Closes the innermost scope: counts it and restores the scope around it.
    #[inline(always)]
    pub(super) fn pop(&self, state: &ThreadState, elapsed: i64) -> Counted {
        let own = self.own_ticks(state, elapsed);
        self.restore_outer(state, elapsed);
        self.count(elapsed, own, self.cell.leave(self.serial()))
    }

    /// Returns `true` if the scope is the innermost one and has no flag.
    #[inline(always)]
    pub(super) fn is_innermost(&self, state: &ThreadState) -> bool {
        // A flag makes the serials differ too.
        state.innermost.get() == self.serial
    }

    /// Returns the self time of the innermost scope.
    #[inline(always)]
    pub(super) fn own_ticks(&self, state: &ThreadState, elapsed: i64) -> i64 {
        // In this order, the first sum is also the thread's next `child_ticks`.
        self.outer_child_ticks + elapsed - state.child_ticks.get()
    }

    /// Makes the scope around this one the innermost one again, with this one as a closed child.
    #[inline(always)]
    pub(super) fn restore_outer(&self, state: &ThreadState, elapsed: i64) {
        state.innermost.set(self.outer_serial);
        state.child_ticks.set(self.outer_child_ticks + elapsed);
    }

    #[inline(always)]
    pub(super) fn count(&self, elapsed: i64, own: i64, outermost: bool) -> Counted {
        Counted {
            needs_maintenance: self.cell.count(elapsed, own, outermost),
            outermost,
        }
    }

    /// Returns the serial without flags.
    // On the fast path there are none, and the mask could be left out: that saved two instructions, but measured 3 %
    // slower side by side.
    #[inline(always)]
    pub(super) fn serial(&self) -> u64 {
        self.serial & !FLAGS
    }

    /// Adds a flag.
    #[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
    pub(super) fn add_flag(&mut self, flag: u64) {
        self.serial |= flag;
    }

    /// Returns `true` if the scope is not part of its thread's state.
    #[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
    pub(super) fn is_detached(&self) -> bool {
        self.has(DETACHED)
    }

    /// Returns `true` if the scope has this flag.
    pub(super) fn has(&self, flag: u64) -> bool {
        self.serial & flag != 0
    }

    /// Returns the id of the scope's name.
    #[allow(clippy::cast_possible_truncation, reason = "the id of a name")]
    pub(super) fn id(&self) -> u32 {
        if self.has(DETACHED) {
            self.serial() as u32
        } else {
            self.name_id()
        }
    }

    /// Returns the id of the name of a scope that has a cell.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the id of a name")]
    pub(super) fn name_id(&self) -> u32 {
        self.cell.id.get() as u32
    }
}

/// Closes a scope that is not logged by its own logger.
///
/// Generic so that it is compiled into the crate that calls it: in a program, unlike in a library, the address of
/// thread-local storage is a constant.
#[inline(never)]
pub(super) fn end_in_caller<const IS_GENERIC: bool>(open: &OpenScope) {
    // All slow calls are tail calls, so that few registers are saved.
    if panicking() {
        return end_direct::<IS_GENERIC>(open);
    }
    local::with_state(|state| {
        if !open.is_innermost(state) {
            return end_direct::<IS_GENERIC>(open);
        }
        let cell = open.cell;
        // Before the clock is read: the processor works on the bucket of the time before while it waits for the branches
        // above, and not after the reading, where the next one would wait for it.
        let newest = cell.prepare();
        let elapsed = subtract(open.start, read_counter(), state.clock_cost.get());
        let own = open.own_ticks(state, elapsed);
        open.restore_outer(state, elapsed);
        if !cell.leave(open.serial) {
            end_recursive(cell, elapsed, own);
            return;
        }
        if !cell.count_outermost(newest, elapsed, own) {
            record_slowly(cell, elapsed);
        }
    });
}

/// [`end_in_caller`], compiled into this crate.
#[cfg(any(test, all(feature = "tracing-layer", not(feature = "strip"))))]
pub(crate) fn end(open: &OpenScope) {
    end_in_caller::<true>(open);
}
