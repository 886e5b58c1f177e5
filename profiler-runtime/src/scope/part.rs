//! Scopes that are parts of one call: the times between the enters and exits of a span.
//!
//! A part nests with other scopes as any scope does. It does not count as a call: its name counts the whole call when the
//! last part has ended, as that of a future.

use super::open::{OpenScope, PART};

/// A part that has closed. Times are in ticks.
pub(crate) struct Part {
    pub(crate) end: u64,
    pub(crate) elapsed: i64,
    /// The time without that of children.
    pub(crate) own: i64,
    /// `true` if a panic ended it.
    pub(crate) panicked: bool,
}

impl OpenScope {
    /// Makes the scope, which has just been opened, a part of a call.
    pub(crate) fn make_part(&mut self) {
        let serial = self.serial();
        self.add_flag(PART);
        if !self.is_detached() {
            // So that the call, which is counted as a future, is not counted as open twice.
            self.cell.enter_poll(serial);
        }
    }

    /// Returns `true` if no other scope of the name is open around it.
    pub(crate) fn is_outermost(&self) -> bool {
        self.is_detached() || self.cell.outermost() == self.serial()
    }

    /// Returns when it began, in ticks.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Returns its serial and the value of `innermost` that it replaced, as the callers of its thread know them.
    pub(crate) fn serials(&self) -> Option<(u64, u64)> {
        (!self.is_detached()).then(|| (self.serial(), self.outer_serial))
    }
}
