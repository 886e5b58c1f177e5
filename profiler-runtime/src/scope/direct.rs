//! The direct path, between the fast and the slow one: calls that are logged, recorded by a session or have a GPU time, and
//! have nothing else that is out of the ordinary.
//!
//! It opens and closes a scope as the fast path does, and then has one thing to do: to push a record, or to record an event.
//! All else takes the slow path: the first call of a name on a thread, a panic, a guard that is dropped out of order,
//! details that a session asks for, thread times, callers, ranges, steps, handles.
//!
//! In debug builds nothing is inlined into one large frame, which would lie on the stack below the GPU part.

use std::mem::ManuallyDrop;
use std::thread::panicking;

use super::builder::ScopeArgs;
use super::close::{Closed, end_logged_slowly, end_recursive, end_slowly, record_slowly};
use super::open::{CUDA, LOGGED, NO_CONTEXT, NO_STREAM, OpenScope, RECORDED};
use crate::clock::{read_counter, subtract};
use crate::collect;
use crate::cuda::{self, Begun, CpuSpan, GpuOptions};
use crate::diagnostics::catch_own_panic;
use crate::local::callers::CountedCall;
use crate::local::{self, Place, slot_index};
use crate::log::LogRequest;
use crate::session;
use crate::switch::SiteDecision;

/// The flags of scopes that the direct path closes.
const DIRECT: u64 = LOGGED | RECORDED | CUDA | NO_CONTEXT | NO_STREAM;

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
            open.serial |= flag;
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
        open.serial |= flag;
        open.start = start;
        Some(open)
    }

    /// Opens a scope without arguments on the direct path, on a thread that is not panicking. Returns `None` if it cannot be.
    /// Reads the clock last.
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
        open.serial |= flag;
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
            open.serial |= flags_of(decision);
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
            let serial = self.serial & !DIRECT;
            // Other flags make the serials differ too.
            if state.innermost.get() != serial {
                return None;
            }
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
        catch_own_panic("a scope was closed", || {
            if self.serial & (DIRECT & !LOGGED) == CUDA {
                return cuda::end(self.serial & !DIRECT, span, Some(self.cell), log);
            }
            let closed = Closed {
                own: 0,
                span,
                panicked: false,
                shared: 0,
                // The direct path opens no scope directly inside an entry with a link.
                place: Place {
                    enclosing: self.outer_serial,
                    parent: 0,
                },
            };
            self.dispatch(&closed, log);
        });
    }
}

/// Returns the flags of a scope for a decision to record or to log it.
#[inline(always)]
fn flags_of(decision: SiteDecision) -> u64 {
    // Both are as far from their flag, so that the compiler moves them at once.
    const _: () = {
        let (logged, recorded) = (SiteDecision::LOGGED as u64, SiteDecision::RECORDED as u64);
        assert!(LOGGED / logged == RECORDED / recorded);
    };
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    flag(decision.is_recorded(), RECORDED) | flag(decision.is_logged(), LOGGED)
}

/// Opens the GPU part of a scope without arguments. Returns its flag, and the time at the end.
// The results are in registers.
#[inline(never)]
fn begin_on_gpu(serial: u64, name: u32) -> (u64, u64) {
    let flag = flag_of(cuda::begin_plain(serial, name));
    (flag, read_counter())
}

/// [`begin_on_gpu`] for a scope with GPU options.
#[inline(never)]
fn begin_with_options(serial: u64, name: u32, options: &mut GpuOptions) -> (u64, u64) {
    let flag = flag_of(cuda::begin_with(serial, name, options));
    (flag, read_counter())
}

/// Opens the GPU part of a scope. Returns its flag, and the time at the end.
#[inline(always)]
pub(super) fn begin_gpu(serial: u64, name: u32, options: Option<&mut GpuOptions>) -> (u64, u64) {
    match options {
        Some(options) => begin_with_options(serial, name, options),
        None => begin_on_gpu(serial, name),
    }
}

#[inline(always)]
fn flag_of(begun: Begun) -> u64 {
    match begun {
        Begun::Opened => CUDA,
        Begun::NoContext => NO_CONTEXT,
        Begun::NoStream => NO_STREAM,
        Begun::NoDriver => 0,
    }
}

/// A scope that was closed on the direct path. Times are in ticks.
struct ClosedDirect {
    end: u64,
    elapsed: i64,
    outermost: bool,
}

/// Closes a scope off the fast path that is not logged by its own logger.
// Generic for the reason that `end_in_caller` is. In a library, an access to thread-local storage also counts as a call, for
// which registers are saved.
#[cold]
#[inline(never)]
pub(super) fn end_direct<const IS_GENERIC: bool>(open: &OpenScope) {
    let Some(closed) = open.close_direct() else {
        return end_slowly(open);
    };
    let flags = open.serial & DIRECT;
    let is_passed_on = if flags == RECORDED {
        let times = (open.start, closed.elapsed);
        session::close_early(
            open.name_id(),
            open.serial & !DIRECT,
            open.outer_serial,
            times,
        )
    } else if flags == LOGGED {
        let times = (closed.end, closed.elapsed);
        collect::log_early(open.cell, open.name_id(), times, || LogRequest::new(1))
    } else if flags == CUDA {
        let times = (closed.end, closed.elapsed);
        return cuda::end_unlogged(open.serial & !DIRECT, times, closed.outermost, open.cell);
    } else {
        flags == 0
    };
    if !is_passed_on {
        let log = (flags & LOGGED != 0).then(|| LogRequest::new(1));
        open.dispatch_direct(closed.end, closed.elapsed, closed.outermost, log);
    }
}

/// Closes a scope that its own logger logs, and takes the request.
///
/// # Safety
///
/// The caller does not use or drop the request.
// Generic for the reason that `end_direct` is.
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
    let is_passed_on = open.serial & DIRECT == 0
        && collect::log_early(open.cell, open.name_id(), times, &mut take);
    if !is_passed_on {
        open.dispatch_direct(closed.end, closed.elapsed, closed.outermost, Some(take()));
    }
}
