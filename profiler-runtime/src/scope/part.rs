//! Scopes that are parts of one call: the times between the enters and exits of a span.
//!
//! A part nests with other scopes as any scope does. It does not count as a call: its name counts the whole call when the
//! last part has ended, as that of a future.

use super::open::{NO_CELL, OpenScope};
use super::serial::{Flags, Serial};
use crate::local::Innermost;

/// A part that has closed. Times are in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) end: u64,
    pub(crate) elapsed: i64,
    /// The time without that of children.
    pub(crate) own: i64,
    /// `true` if a panic ended it.
    pub(crate) panicked: bool,
    /// `true` if no other scope of the name was open around it.
    pub(crate) outermost: bool,
}

impl OpenScope {
    /// Returns what stands for no scope where there is room for one.
    pub(crate) fn none() -> Self {
        Self {
            cell: &NO_CELL,
            start: 0,
            serial: Serial::detached(0),
            outer_serial: Innermost::NONE,
            outer_child_ticks: 0,
        }
    }

    /// Makes the scope, which has just been opened, a part of a call.
    pub(crate) fn make_part(&mut self) {
        let serial = self.serial();
        self.add_flag(Flags::PART);
        if !self.is_detached() {
            // So that the call, which is counted as a future, is not counted as open twice.
            self.cell.enter_poll(serial);
        }
    }

    /// Returns `true` if the scope is a part of a call.
    pub(crate) fn is_part(&self) -> bool {
        self.has(Flags::PART)
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
    pub(crate) fn serials(&self) -> Option<(u64, Innermost)> {
        (!self.is_detached()).then(|| (self.serial(), self.outer_serial))
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;
    use std::thread;

    use super::*;
    use crate::name;
    use crate::scope::{ScopeArgs, end, end_part};
    use crate::switch::SiteDecision;

    fn open(name: &name::Name) -> OpenScope {
        let decision = SiteDecision::new(name.id);
        OpenScope::slow(decision, None, &mut ScopeArgs::default()).unwrap()
    }

    fn open_part(name: &name::Name) -> OpenScope {
        let mut open = open(name);
        open.make_part();
        open
    }

    /// Runs `f` with an ordinary scope of the name that is left open, which another scope around it has found.
    fn with_a_leak(text: &'static str, f: impl FnOnce(&'static name::Name) + Send) {
        let name = name::declared(text, Location::caller());
        let around = name::declared("part: around", Location::caller());
        let on_thread = move || {
            let outer = open(around);
            let _ = open(name);
            end(&outer);
            assert_eq!(name.totals().open(), 1);
            f(name);
            assert_eq!(name.totals().open(), 1, "the leak is still there");
        };
        thread::scope(|scope| scope.spawn(on_thread).join()).unwrap();
    }

    #[test]
    fn closing_a_part_late_does_not_close_a_leaked_scope_of_its_name() {
        with_a_leak("part: late", |name| {
            let outer = open(name::declared("part: around", Location::caller()));
            let part = open_part(name);
            end(&outer);
            assert!(end_part(&part).is_some());
        });
    }

    #[test]
    fn giving_up_a_part_does_not_close_a_leaked_scope_of_its_name() {
        with_a_leak("part: given up", |name| {
            let outer = open(name::declared("part: around", Location::caller()));
            let part = open_part(name);
            end(&outer);
            part.give_up();
            let part = open_part(name);
            part.give_up();
            let next = open(name);
            assert!(next.is_outermost());
            end(&next);
            assert_eq!(name.totals().recursive_calls, 0);
        });
    }

    #[test]
    fn children_of_a_given_up_scope_count_for_the_enclosing_scope() {
        let [around, gone, inside] = ["part: outer", "part: gone", "part: inside"]
            .map(|text| name::declared(text, Location::caller()));
        thread::spawn(move || {
            end(&open(inside));
            let before = inside.totals().total;
            let outer = open(around);
            let middle = open(gone);
            let inner = open(inside);
            end(&inner);
            middle.give_up();
            end(&outer);
            let (outer, inner) = (around.totals(), inside.totals().total - before);
            assert_eq!(outer.own, outer.total - inner);
        })
        .join()
        .unwrap();
        assert_eq!((around.totals().out_of_order, gone.totals().open()), (0, 0));
        assert_eq!(gone.totals().calls(), 0);
    }
}
