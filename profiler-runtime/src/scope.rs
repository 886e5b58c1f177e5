//! The guards of synchronous code, and what happens when they open and close.

use std::marker::PhantomData;

use crate::clock::clock;
use crate::collect;
use crate::entry::{Attached, Entry, is_due};
use crate::local::{self, Local};
use crate::name;
use crate::site::Ticket;
use crate::stats::{Ending, StatCell};

/// A scope that is being measured until it is dropped.
///
/// It belongs to the thread that opened it: a parent's time is known only on its own thread. It can
/// therefore not be held across an `.await` on a multi-threaded executor; measure the future there
/// ([`MeasureFuture`](crate::MeasureFuture)).
///
/// Made by [`scope!`](crate::scope).
#[must_use = "a scope ends when its guard is dropped: bind it, as in `let _scope = scope!(\"load\");`"]
pub struct Scope {
    open: Option<Open>,
    not_send: PhantomData<*const ()>,
}

/// An open scope, with what its opening replaced in the thread's state.
pub(crate) struct Open {
    cell: &'static StatCell,
    start: u64,
    serial: u64,
    outer: u64,
    outer_children: i64,
    id: u32,
    every: u32,
    /// Whether a default logger wants this call.
    logged: bool,
    /// Whether a panic was under way already.
    panicking: bool,
}

/// What closing a scope has measured.
pub(crate) struct Closed {
    pub(crate) end: u64,
    pub(crate) elapsed: i64,
}

/// Stands for the cell of a thread that has none any more; never counts anything.
static NO_CELL: StatCell = StatCell::new();

impl Open {
    /// Opens a scope; the clock is read last.
    #[inline]
    pub(crate) fn now(ticket: Ticket, every: u32) -> Option<Self> {
        let mut open = local::with(|local| Self::on(local, ticket, every))
            .unwrap_or_else(|| Some(Self::outside(ticket, every)))?;
        open.start = clock().ticks();
        Some(open)
    }

    #[inline]
    fn on(local: &Local, ticket: Ticket, every: u32) -> Option<Self> {
        let cell = local.cell(ticket.id())?;
        cell.open.add(1);
        let serial = local.serial.get() + 1;
        local.serial.set(serial);
        Some(Self {
            cell,
            start: 0,
            serial,
            outer: local.top.replace(serial),
            outer_children: local.children.replace(0),
            id: ticket.id(),
            every,
            logged: ticket.is_logged() && is_due(ticket, every),
            panicking: std::thread::panicking(),
        })
    }

    /// On a thread whose state is gone already: the scope stands by itself.
    #[cold]
    fn outside(ticket: Ticket, every: u32) -> Self {
        Self {
            cell: &NO_CELL,
            start: 0,
            serial: 0,
            outer: 0,
            outer_children: 0,
            id: ticket.id(),
            every,
            logged: ticket.is_logged(),
            panicking: std::thread::panicking(),
        }
    }

    /// Closes the scope; the clock is read first.
    #[inline]
    fn close(&self) -> Closed {
        let clock = clock();
        let end = clock.ticks();
        let elapsed = clock.elapsed(self.start, end);
        if local::with(|local| self.close_on(local, elapsed)).is_none() {
            self.close_outside(elapsed);
        }
        Closed { end, elapsed }
    }

    #[inline]
    fn close_on(&self, local: &Local, elapsed: i64) {
        let depth = self.cell.open.get().wrapping_sub(1);
        self.cell.open.set(depth);
        let own = if local.top.get() == self.serial {
            let own = elapsed - local.children.get();
            local.top.set(self.outer);
            local.children.set(self.outer_children + elapsed);
            own
        } else {
            self.close_out_of_order(local, elapsed)
        };
        if self.cell.count(elapsed, own, depth == 0) {
            self.carry();
        }
        if std::thread::panicking() && !self.panicking {
            self.cell.count_ending(Ending::Panicked);
        }
    }

    /// A guard that was dropped before a younger one, or whose younger one was forgotten. Its time is
    /// exact; what its children took is not known any more, so that all of it counts as its own.
    #[cold]
    fn close_out_of_order(&self, local: &Local, elapsed: i64) -> i64 {
        self.cell.count_disordered();
        if self.serial < local.top.get() {
            local.top.set(self.outer);
            local.children.set(self.outer_children + elapsed);
        }
        elapsed
    }

    #[cold]
    fn close_outside(&self, elapsed: i64) {
        let Some(name) = name::by_id(self.id) else { return };
        name.count_directly(|cell| {
            let _ = cell.count(elapsed, elapsed, true);
            if std::thread::panicking() && !self.panicking {
                cell.count_ending(Ending::Panicked);
            }
        });
    }

    #[cold]
    fn carry(&self) {
        if let Some(name) = name::by_id(self.id) {
            name.carry(self.cell);
        }
    }

    /// Hands a finished call to the collector.
    #[cold]
    fn log(&self, closed: &Closed, attached: Attached) {
        collect::log(Some(self.cell), self.id, self.every, closed, attached);
    }
}

impl From<Option<Open>> for Scope {
    #[inline]
    fn from(open: Option<Open>) -> Self {
        Self { open, not_send: PhantomData }
    }
}

impl Scope {
    /// A scope that is not measured.
    #[inline]
    pub(crate) const fn off() -> Self {
        Self { open: None, not_send: PhantomData }
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = &self.open {
            end(open);
        }
    }
}

#[inline(never)]
fn end(open: &Open) {
    let closed = open.close();
    if open.logged {
        open.log(&closed, Attached::default());
    }
}

/// A scope that brings its own logger, step or turn.
///
/// Made by [`scope!`](crate::scope) with arguments; see [`Scope`].
#[must_use = "a scope ends when its guard is dropped: bind it, as in `let _scope = scope!(\"load\");`"]
pub struct LoggedScope {
    open: Option<Open>,
    due: bool,
    attached: Attached,
    not_send: PhantomData<*const ()>,
}

impl LoggedScope {
    #[inline]
    pub(crate) fn open(entry: Entry) -> Self {
        let due = entry.is_due();
        let Entry { ticket, every, attached, .. } = entry;
        // Its turn has been decided on; the opening must not decide again.
        let open = ticket.and_then(|ticket| Open::now(ticket.unlogged(), every));
        Self { open, due, attached, not_send: PhantomData }
    }
}

impl Drop for LoggedScope {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = &self.open {
            end_logged(open, self.due, &mut self.attached);
        }
    }
}

#[inline(never)]
fn end_logged(open: &Open, due: bool, attached: &mut Attached) {
    let closed = open.close();
    if due {
        open.log(&closed, std::mem::take(attached));
    }
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("measured", &self.open.is_some()).finish()
    }
}

impl std::fmt::Debug for LoggedScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoggedScope").field("measured", &self.open.is_some()).finish()
    }
}
