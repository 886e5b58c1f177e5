//! The direct path, between the fast and the slow one: calls that are logged, recorded by a session or have a GPU time, and
//! have nothing else that is out of the ordinary.
//!
//! It opens and closes a scope as the fast path does, and then has one thing to do: to push a record, or to record an event.
//! All else takes the slow path: the first call of a name on a thread, a panic, a guard that is dropped out of order,
//! details that a session asks for, thread times, callers, ranges, steps, handles.
//!
//! Debug builds do not inline its parts: they would make one large frame, which stays on the stack during the GPU part.

use std::mem::ManuallyDrop;
use std::thread::panicking;

use profiler_host::diagnostics::catch_own_panic;

use super::open::{OpenScope, ScopeArgs, begin_gpu, begin_on_gpu, begin_with_options};
use super::serial::Flags;
use super::slow::{ClosedScope, end_logged_slowly, end_recursive, end_slowly, record_slowly};
use crate::clock::{read_counter, subtract};
use crate::collect;
use crate::cuda::{self, CpuSpan, GpuOptions};
use crate::local::callers::CountedCall;
use crate::local::{self, Place, slot_index};
use crate::log_record::LogRequest;
use crate::session;
use crate::switch::SiteDecision;

/// The flags of scopes that the direct path closes.
const DIRECT: Flags = Flags::LOGGED
    .and(Flags::RECORDED)
    .and(Flags::CUDA)
    .and(Flags::NO_CONTEXT)
    .and(Flags::NO_STREAM);

impl OpenScope {
    /// Opens a scope without arguments, off the fast path.
    pub(crate) fn without_args(decision: SiteDecision) -> Option<Self> {
        let direct = if panicking() {
            None
        } else {
            Self::direct(decision)
        };
        direct.or_else(|| Self::slow(decision, None, &mut ScopeArgs::default()))
    }

    /// Opens a scope with arguments. `step` is the step that the call gives.
    #[inline(never)]
    pub(super) fn with_more(
        decision: SiteDecision,
        step: Option<u64>,
        args: &mut ScopeArgs,
    ) -> Option<Self> {
        let has_gpu = args.gpu.is_some() || decision.is_cuda();
        let pushed = if args.shapes.is_none() && !panicking() {
            Self::push_direct(decision)
        } else {
            None
        };
        let Some(mut open) = pushed else {
            return Self::slow(decision, step, args);
        };
        if has_gpu {
            let (flag, start) = begin_gpu(open.serial(), decision.id(), args.gpu.as_mut());
            open.serial.add(flag);
            open.start = start;
        } else {
            open.start = read_counter();
        }
        Some(open)
    }

    /// Opens a scope with a GPU time and GPU options on the direct path, on a thread that is not panicking. Returns `None`,
    /// and leaves the options, if it cannot be. Reads the clock last.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn direct_with(decision: SiteDecision, options: &mut GpuOptions) -> Option<Self> {
        let mut open = Self::push_direct(decision)?;
        let (flag, start) = begin_with_options(open.serial(), decision.id(), options);
        open.serial.add(flag);
        open.start = start;
        Some(open)
    }

    /// Opens a scope without arguments on the direct path, on a thread that is not panicking. Returns `None` if it
    /// cannot be. Reads the clock last.
    #[inline(always)]
    pub(crate) fn direct(decision: SiteDecision) -> Option<Self> {
        if decision.is_cuda() {
            Self::direct_on_gpu(decision)
        } else {
            Self::direct_on_cpu(decision)
        }
    }

    /// [`direct`](Self::direct) for a scope with a GPU time.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn direct_on_gpu(decision: SiteDecision) -> Option<Self> {
        let mut open = Self::push_direct(decision)?;
        let (flag, start) = begin_on_gpu(open.serial(), decision.id());
        open.serial.add(flag);
        open.start = start;
        Some(open)
    }

    /// [`direct`](Self::direct) for a scope without a GPU time.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn direct_on_cpu(decision: SiteDecision) -> Option<Self> {
        let mut open = Self::push_direct(decision)?;
        open.start = read_counter();
        Some(open)
    }

    /// Pushes a scope with flags for what the decision asks for. Returns `None`, and does nothing, if the slow path must do
    /// it.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn push_direct(decision: SiteDecision) -> Option<Self> {
        let has_details = || decision.is_recorded() && session::wants_details();
        if !decision.is_direct() || has_details() {
            return None;
        }
        local::with_state(|state| {
            let cell = state.cell_at(slot_index(decision.id()) as usize)?;
            if state.must_sweep() {
                return None;
            }
            let mut open = Self::push(state, cell);
            open.serial.add(Flags::of_decision(decision));
            Some(open)
        })
        .flatten()
    }

    /// Closes and counts the scope if it is the innermost one and has no other flags than [`DIRECT`]. Else returns `None`,
    /// and does nothing.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn close_direct(&self) -> Option<ClosedDirect> {
        if panicking() {
            return None;
        }
        local::with_state(|state| {
            let serial = self.if_innermost(state, DIRECT)?;
            let cell = self.cell;
            let newest = cell.prepare();
            let end = read_counter();
            let elapsed = subtract(self.start, end, state.clock_cost.get());
            let own = self.own_ticks(state, elapsed);
            self.restore_outer(state, elapsed);
            let mut outermost = cell.leave(serial);
            if !outermost {
                outermost = end_recursive(cell, elapsed, own);
            } else if !cell.count_outermost(newest, elapsed, own) {
                record_slowly(cell, elapsed);
            }
            Some(ClosedDirect {
                end,
                elapsed,
                outermost,
            })
        })
        .flatten()
    }

    /// Passes on a scope that was closed by [`close_direct`](Self::close_direct), if one push does not do.
    #[inline(never)]
    fn dispatch_direct(&self, end: u64, elapsed: i64, outermost: bool, log: Option<LogRequest>) {
        let span = CpuSpan {
            end,
            elapsed,
            outermost,
            call: CountedCall::NONE,
        };
        let but_logged = DIRECT.except(Flags::LOGGED);
        let flags = self.serial.flags(but_logged);
        if flags == Flags::CUDA {
            let end = || cuda::end(self.serial(), span, Some(self.cell), log);
            catch_own_panic("a scope was closed", end);
            return;
        }
        if flags == Flags::NO_CONTEXT {
            let end = || self.end_without_context(span, Some(self.cell), log);
            catch_own_panic("a scope was closed", end);
            return;
        }
        catch_own_panic("a scope was closed", || {
            let closed = ClosedScope {
                own: 0,
                span,
                panicked: false,
                shared: 0,
                // The direct path opens no scope directly inside an entry with a link.
                place: Place {
                    enclosing: self.outer_serial.unlinked(),
                    parent: 0,
                },
            };
            self.dispatch(&closed, log);
        });
    }
}

/// A scope that was closed on the direct path. Times are in ticks.
struct ClosedDirect {
    end: u64,
    elapsed: i64,
    outermost: bool,
}

/// Closes a scope off the fast path that is not logged by its own logger.
// Generic, so that it is compiled into the calling crate: in a program, an access to thread-local storage is no call, so no
// registers are saved for it.
#[cold]
#[inline(never)]
pub(super) fn end_direct<const IS_GENERIC: bool>(open: &OpenScope) {
    let Some(closed) = open.close_direct() else {
        return end_slowly(open);
    };
    let flags = open.serial.flags(DIRECT);
    let is_passed_on = if flags == Flags::RECORDED {
        let times = (open.start, closed.elapsed);
        session::close_early(
            open.name_id(),
            open.serial(),
            open.outer_serial.unlinked(),
            times,
        )
    } else if flags == Flags::LOGGED {
        let times = (closed.end, closed.elapsed);
        collect::log_early(open.cell, open.name_id(), times, || LogRequest::new(1))
    } else if flags == Flags::CUDA {
        let times = (closed.end, closed.elapsed);
        return cuda::end_unlogged(open.serial(), times, closed.outermost, open.cell);
    } else {
        flags == Flags::NONE
    };
    if !is_passed_on {
        let log = flags.has(Flags::LOGGED).then(|| LogRequest::new(1));
        open.dispatch_direct(closed.end, closed.elapsed, closed.outermost, log);
    }
}

/// Closes a scope that its own logger logs, and takes the request.
///
/// # Safety
///
/// The caller does not use or drop the request.
// Generic, so that it is compiled into the calling crate, where the address of thread-local storage is a constant.
#[inline(never)]
pub(super) unsafe fn end_logged<const IS_GENERIC: bool>(
    open: &OpenScope,
    log: &mut ManuallyDrop<LogRequest>,
) {
    // SAFETY: it is taken once on each of the paths below, since `log_early` takes it only if it returns `true`, and not used
    // by the caller, as it promises.
    let mut take = || unsafe { ManuallyDrop::take(log) };
    let Some(closed) = open.close_direct() else {
        return end_logged_slowly(open, take());
    };
    let times = (closed.end, closed.elapsed);
    let is_passed_on = open.serial.flags(DIRECT) == Flags::NONE
        && collect::log_early(open.cell, open.name_id(), times, &mut take);
    if !is_passed_on {
        open.dispatch_direct(closed.end, closed.elapsed, closed.outermost, Some(take()));
    }
}
