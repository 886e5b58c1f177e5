//! The fast path that opens and closes a scope.
//!
//! It handles ordinary calls and calls no function. A call that is logged, recorded or has a GPU time, and is
//! ordinary otherwise, takes the direct path (`direct.rs`). Anything else takes the slow path: the first call of a name on a
//! thread, a panic, a guard that is dropped out of order. The fast path ends in a tail call of the others, so that it has no
//! registers to save.
//!
//! Which path a call takes costs one comparison each. On opening, a decision with a flag is larger than any id, so that
//! no cell is found for it. On closing, a serial with a flag never equals the innermost one.

use std::thread::panicking;

use super::direct::end_direct;
use super::open::OpenScope;
use super::serial::Flags;
use super::slow::{end_recursive, record_slowly};
use crate::clock::{read_counter, subtract};
use crate::local::{self, slot_index};
use crate::switch::SiteDecision;

impl OpenScope {
    /// Opens a scope on the fast path. Returns `None` if the direct path or the slow one must do it. Reads the clock last.
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
        let Some(serial) = open.if_innermost(state, Flags::NONE) else {
            return end_direct::<IS_GENERIC>(open);
        };
        let cell = open.cell;
        // Before the clock is read: the processor works on the bucket of the time before while it waits for the branches
        // above, and not after the reading, where the next one would wait for it.
        let newest = cell.prepare();
        let elapsed = subtract(open.start, read_counter(), state.clock_cost.get());
        let own = open.own_ticks(state, elapsed);
        open.restore_outer(state, elapsed);
        if !cell.leave(serial) {
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
