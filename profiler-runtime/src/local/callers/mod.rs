//! The callers of the running statistics, while they are turned on.
//!
//! Each thread then keeps a stack of its open scopes, with their names, and a cell for each pair of caller and callee
//! that it has met. All calls take the slow path, which is what this costs.

mod registry;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::links::{parent_of, with_entered};
use super::{Block, ThreadState, with_state};
use crate::stats::EdgeCell;
use crate::sync::ReentrancyGuard;
pub(crate) use registry::{OTHER, all as all_edges};

/// The caller of a scope without an enclosing scope.
pub(crate) const NO_CALLER: u32 = u32::MAX;

/// Open scopes that one thread remembers. Beyond that, the older half is presumed leaked.
const MAX_OPEN: usize = 1 << 16;

/// The ids of the names of a caller and a callee.
pub(crate) type Edge = (u32, u32);

/// An open scope, or a poll.
#[derive(Debug)]
struct Frame {
    serial: u64,
    edge: Edge,
    cell: Option<&'static EdgeCell>,
    is_primitive: bool,
}

/// The part of a thread's block.
#[derive(Debug, Default)]
pub(super) struct Callers {
    open: Vec<Frame>,
    cells: HashMap<Edge, &'static EdgeCell>,
}

/// The call of a future, from its first poll to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FutureCall {
    caller: u32,
    is_primitive: bool,
}

fn with_callers<T>(f: impl FnOnce(&mut Callers) -> T) -> Option<T> {
    let _reentrancy = ReentrancyGuard::try_enter();
    let block = with_state(ThreadState::block).flatten()?;
    let mut callers = block.callers.try_borrow_mut().ok()?;
    Some(f(callers.get_or_insert_default()))
}

/// Runs `f` on the thread's callers, if it has counted any.
fn with_known<T>(f: impl FnOnce(&Callers) -> T) -> Option<T> {
    let block = with_state(|state| state.block.get()).flatten()?;
    let callers = block.callers.try_borrow().ok()?;
    callers.as_deref().map(f)
}

/// Notes that a scope of this name opens. `outer` is the thread's innermost entry before it.
pub(crate) fn opened(name: u32, serial: u64, outer: u64) -> Option<FutureCall> {
    let (enclosing, shared) = parent_of(outer);
    with_callers(|callers| {
        callers.forget_above(enclosing);
        let caller = match &shared {
            Some(shared) => shared.caller,
            None => callers.name_of(enclosing),
        };
        callers.push(serial, (caller, name));
        let is_primitive = callers.open.last().is_none_or(|frame| frame.is_primitive);
        FutureCall {
            caller,
            is_primitive,
        }
    })
}

/// Notes that a later poll of a future begins.
pub(crate) fn resumed(name: u32, serial: u64, outer: u64, call: FutureCall) {
    let (enclosing, _) = parent_of(outer);
    with_callers(|callers| {
        callers.forget_above(enclosing);
        callers.push(serial, (call.caller, name));
    });
}

/// Counts a scope that has closed.
pub(crate) fn closed(name: u32, serial: u64, elapsed: i64, own: i64) {
    with_callers(|callers| match callers.remove(serial) {
        Some(frame) => frame.count(elapsed, own),
        // It was presumed leaked.
        None => callers.count((NO_CALLER, name), (elapsed, own), true),
    });
}

/// Notes that a poll has ended.
pub(crate) fn suspended(serial: u64) {
    with_callers(|callers| callers.remove(serial));
}

/// Counts a future that has ended.
pub(crate) fn finished(name: u32, call: FutureCall, elapsed: i64, own: i64) {
    with_callers(|callers| callers.count((call.caller, name), (elapsed, own), call.is_primitive));
}

/// Returns the name of the open scope with this serial, and the calls that are open around it and by it, each once.
pub(super) fn chain(serial: u64) -> (u32, Arc<[Edge]>) {
    let chain = with_known(|callers| {
        let open = callers.open.iter().filter(|frame| frame.serial <= serial);
        let mut edges: Vec<Edge> = Vec::new();
        // Otherwise the edges would double with each handle that is taken inside of an entered one.
        let mut add = |others: &mut dyn Iterator<Item = Edge>| {
            edges.extend(others);
            edges.sort_unstable();
            edges.dedup();
        };
        add(&mut open.map(|frame| frame.edge));
        with_entered(|shared| add(&mut shared.calls.iter().copied()));
        (callers.name_of(serial), edges.into())
    });
    chain.unwrap_or_else(|| (NO_CALLER, [].into()))
}

/// Moves the counts of an ending thread to the totals of all threads.
pub(super) fn retire(block: &Block) {
    let callers = block.callers.try_borrow_mut().ok();
    if let Some(callers) = callers.and_then(|mut callers| callers.take()) {
        registry::retire(callers.cells.into_values());
    }
}

impl Callers {
    /// Returns the name of an open scope.
    fn name_of(&self, serial: u64) -> u32 {
        let frame = self.open.iter().rfind(|frame| frame.serial == serial);
        frame.map_or(NO_CALLER, |frame| frame.edge.1)
    }

    /// Removes scopes inside the one with this serial: they were left open, and are not around a new scope.
    fn forget_above(&mut self, serial: u64) {
        while let Some(frame) = self.open.pop_if(|frame| frame.serial > serial) {
            frame.leave();
        }
    }

    fn push(&mut self, serial: u64, edge: Edge) {
        let cell = self.cell(edge);
        let mut is_around = false;
        with_entered(|shared| is_around |= shared.calls.contains(&edge));
        if self.open.len() >= MAX_OPEN {
            self.open
                .drain(..MAX_OPEN / 2)
                .for_each(|frame| frame.leave());
        }
        if self.open.try_reserve(1).is_ok() {
            let is_inner = cell.is_some_and(|cell| !cell.enter());
            self.open.push(Frame {
                serial,
                edge,
                cell,
                is_primitive: !is_inner && !is_around,
            });
        }
    }

    fn remove(&mut self, serial: u64) -> Option<Frame> {
        let place = self.open.iter().rposition(|frame| frame.serial == serial)?;
        let frame = self.open.remove(place);
        frame.leave();
        Some(frame)
    }

    fn count(&mut self, edge: Edge, (elapsed, own): (i64, i64), is_primitive: bool) {
        if let Some(cell) = self.cell(edge) {
            cell.count(elapsed, own, is_primitive);
        }
    }

    /// Returns the thread's cell of an edge. Without memory there is none: then the caller is not known.
    fn cell(&mut self, edge: Edge) -> Option<&'static EdgeCell> {
        if let Some(cell) = self.cells.get(&edge) {
            return Some(cell);
        }
        self.cells.try_reserve(1).ok()?;
        let counted_as = registry::admit(edge);
        let cell = match self.cells.get(&counted_as) {
            Some(cell) => cell,
            None => registry::new_cell(counted_as)?,
        };
        // Edges beyond the bound are looked up again, because their number is not bounded.
        self.cells.insert(counted_as, cell);
        Some(cell)
    }
}

impl Frame {
    fn count(&self, elapsed: i64, own: i64) {
        if let Some(cell) = self.cell {
            cell.count(elapsed, own, self.is_primitive);
        }
    }

    fn leave(&self) {
        if let Some(cell) = self.cell {
            cell.leave();
        }
    }
}

/// A thread's callers, or `None` if it has counted none.
pub(super) type CallersCell = RefCell<Option<Box<Callers>>>;
