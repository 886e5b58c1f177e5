//! An open scope: what all paths that open and close one share.

use super::handle::Handle;
use super::serial::{Flags, Serial};
use crate::clock::read_counter;
use crate::cuda::{self, Begun, GpuOptions};
use crate::local::{Innermost, ThreadState};
use crate::session::Shapes;
use crate::stats::StatCell;
use crate::switch::SiteDecision;

/// The arguments of a call that the fast path has no use for.
#[derive(Debug, Default)]
pub(crate) struct ScopeArgs {
    /// `None` if the call has no argument for its GPU time.
    pub(crate) gpu: Option<GpuOptions>,
    /// `None` if no session records shapes, or the call gives none.
    pub(crate) shapes: Shapes,
    pub(crate) parent: Handle,
}

impl ScopeArgs {
    /// Returns `true` if the call has none of these arguments.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.gpu.is_none() && self.shapes.is_none() && self.parent.is_none()
    }
}

/// An open scope, with what its opening replaced in the thread's state.
// Copied where it stands on a stack of its own: each is closed once all the same.
#[derive(Clone, Copy)]
pub(crate) struct OpenScope {
    pub(super) cell: &'static StatCell,
    pub(super) start: u64,
    pub(super) serial: Serial,
    /// The value of `innermost` that the scope replaced.
    pub(super) outer_serial: Innermost,
    pub(super) outer_child_ticks: i64,
}

/// The result of counting a call.
pub(super) struct CountOutcome {
    /// `true` if [`StatCell::maintain`] must be called.
    pub(super) needs_maintenance: bool,
    /// `true` if no other scope of the name is open around the call.
    pub(super) outermost: bool,
}

/// The cell of detached scopes. It never counts anything.
pub(super) static NO_CELL: StatCell = StatCell::new();

impl OpenScope {
    #[inline(always)]
    pub(super) fn push(state: &ThreadState, cell: &'static StatCell) -> Self {
        let serial = state.last_serial.get() + 1;
        state.last_serial.set(serial);
        let outer_serial = state.innermost.replace(Innermost::new(serial));
        cell.enter(serial);
        let outer_child_ticks = state.child_ticks.get();
        Self {
            cell,
            start: 0,
            serial: Serial::new(serial),
            outer_serial,
            outer_child_ticks,
        }
    }

    /// Returns a scope that is not part of its thread's state.
    pub(super) fn detached(decision: SiteDecision) -> Self {
        Self {
            cell: &NO_CELL,
            start: 0,
            serial: Serial::detached(decision.id()),
            outer_serial: Innermost::NONE,
            outer_child_ticks: 0,
        }
    }

    /// Closes the innermost scope: counts it and restores the scope around it.
    #[inline(always)]
    pub(super) fn pop(&self, state: &ThreadState, elapsed: i64) -> CountOutcome {
        let own = self.own_ticks(state, elapsed);
        self.restore_outer(state, elapsed);
        self.count(elapsed, own, self.cell.leave(self.serial()))
    }

    /// Returns the serial if the scope is the innermost one and has no flags but these.
    #[inline(always)]
    pub(super) fn if_innermost(&self, state: &ThreadState, allowed: Flags) -> Option<u64> {
        let serial = self.serial.without(allowed);
        (state.innermost.get() == Innermost::new(serial)).then_some(serial)
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
    pub(super) fn count(&self, elapsed: i64, own: i64, outermost: bool) -> CountOutcome {
        CountOutcome {
            needs_maintenance: self.cell.count(elapsed, own, outermost),
            outermost,
        }
    }

    /// Returns the serial without flags.
    #[inline(always)]
    pub(super) fn serial(&self) -> u64 {
        self.serial.number()
    }

    /// Adds a flag.
    #[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
    pub(super) fn add_flag(&mut self, flag: Flags) {
        self.serial.add(flag);
    }

    /// Returns `true` if the scope is not part of its thread's state.
    #[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
    pub(super) fn is_detached(&self) -> bool {
        self.has(Flags::DETACHED)
    }

    /// Returns `true` if the scope has this flag.
    pub(super) fn has(&self, flag: Flags) -> bool {
        self.serial.flags(flag) != Flags::NONE
    }

    /// Returns the id of the scope's name.
    #[allow(clippy::cast_possible_truncation, reason = "the id of a name")]
    pub(super) fn id(&self) -> u32 {
        if self.has(Flags::DETACHED) {
            self.serial() as u32
        } else {
            self.name_id()
        }
    }

    /// Returns the id of the name of a scope that has a cell.
    #[inline(always)]
    pub(super) fn name_id(&self) -> u32 {
        self.cell.name()
    }
}

/// Opens the GPU part of a scope without arguments. Returns its flag, and the time at the end.
// A pair of words is returned in registers.
#[inline(never)]
pub(super) fn begin_on_gpu(serial: u64, name: u32) -> (Flags, u64) {
    let flag = flag_of(cuda::begin_plain(serial, name));
    (flag, read_counter())
}

/// [`begin_on_gpu`] for a scope with GPU options.
#[inline(never)]
pub(super) fn begin_with_options(serial: u64, name: u32, options: &mut GpuOptions) -> (Flags, u64) {
    let flag = flag_of(cuda::begin_with(serial, name, options));
    (flag, read_counter())
}

/// Opens the GPU part of a scope. Returns its flag, and the time at the end.
#[inline(always)]
pub(super) fn begin_gpu(serial: u64, name: u32, options: Option<&mut GpuOptions>) -> (Flags, u64) {
    match options {
        Some(options) => begin_with_options(serial, name, options),
        None => begin_on_gpu(serial, name),
    }
}

#[inline(always)]
fn flag_of(begun: Begun) -> Flags {
    match begun {
        Begun::Opened => Flags::CUDA,
        Begun::NoContext => Flags::NO_CONTEXT,
        Begun::NoStream => Flags::NO_STREAM,
        Begun::NoDriver => Flags::NONE,
    }
}
