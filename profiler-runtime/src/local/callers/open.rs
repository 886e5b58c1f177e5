//! The open calls of one thread.

use std::collections::HashMap;

use super::CountedCall;
use super::registry::{self, NO_CALLER, Node};
use crate::local::links::with_entered;
use crate::local::shared_scope::{Caller, Pair, SharedCall};
use crate::stats::NodeCell;

/// Open scopes that one thread remembers. Beyond that, the older half is presumed leaked.
const MAX_OPEN: usize = 1 << 16;
/// Paths that one thread finds without the lock of all nodes. Beyond that, it forgets them.
const MAX_KNOWN: usize = 1 << 16;

/// A node, as one thread knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownNode {
    pub(super) node: &'static Node,
    pub(super) cell: &'static NodeCell,
    /// The index of its caller and callee in [`Callers::pairs`].
    pair: usize,
}

impl KnownNode {
    /// Counts a call that has ended, with its total and self time.
    pub(super) fn count(
        self,
        (elapsed, own): (i64, i64),
        is_recursive: bool,
        is_outermost: bool,
    ) -> CountedCall {
        let kind = self.node.kind(is_recursive, is_outermost);
        self.cell.count(elapsed, own, kind);
        CountedCall::new(self.node.id, kind)
    }
}

/// The open calls of a caller and a callee.
#[derive(Clone, Copy, Debug)]
struct OpenPair {
    calls: usize,
    /// The node of the first one.
    first: KnownNode,
}

/// An open scope, or a poll.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenCall {
    serial: u64,
    name: u32,
    /// `None` if there is no memory for it.
    pub(super) known: Option<KnownNode>,
    pub(super) is_recursive: bool,
}

/// The part of a thread's block.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    open: Vec<OpenCall>,
    pairs: Vec<OpenPair>,
    by_pair: HashMap<Pair, usize>,
    by_node: HashMap<u32, KnownNode>,
    /// By the node of the caller, and the callee's name.
    by_path: HashMap<(u32, u32), KnownNode>,
}

impl Callers {
    /// Returns the caller of what is opened directly inside the open scope with this serial.
    pub(super) fn caller(&self, serial: u64) -> Caller {
        let frame = self.open.iter().rfind(|frame| frame.serial == serial);
        frame.map_or(Caller::NONE, |frame| Caller {
            node: frame.known.map_or(NO_CALLER, |known| known.node.id),
            name: frame.name,
        })
    }

    /// Returns the calls that are open around the scope with this serial and by it.
    pub(super) fn up_to(&self, serial: u64) -> impl Iterator<Item = SharedCall> {
        let open = self.open.iter().filter(move |frame| frame.serial <= serial);
        let known = open.filter_map(|frame| frame.known);
        known.map(|known| (known.node.pair, known.node.id))
    }

    /// Removes scopes inside the one with this serial: they were left open, and are not around a new scope.
    pub(super) fn forget_above(&mut self, serial: u64) {
        while let Some(frame) = self.open.pop_if(|frame| frame.serial > serial) {
            self.leave(&frame);
        }
    }

    /// Opens a call of a name.
    pub(super) fn enter(&mut self, serial: u64, caller: Caller, name: u32) -> OpenCall {
        let (known, is_recursive) = match self.find(caller, name) {
            Some((known, is_recursive)) => (Some(known), is_recursive),
            None => (None, false),
        };
        let frame = OpenCall {
            serial,
            name,
            known,
            is_recursive,
        };
        self.push(frame);
        frame
    }

    /// Opens a poll of a future whose node is known.
    pub(super) fn resume(&mut self, serial: u64, name: u32, node: u32) {
        let known = self.known(node, || registry::by_id(node));
        self.push(OpenCall {
            serial,
            name,
            known,
            is_recursive: false,
        });
    }

    fn push(&mut self, frame: OpenCall) {
        if self.open.len() >= MAX_OPEN {
            let older: Vec<OpenCall> = self.open.drain(..MAX_OPEN / 2).collect();
            for frame in &older {
                self.leave(frame);
            }
        }
        if self.open.try_reserve(1).is_err() {
            return;
        }
        self.open.push(frame);
        if let Some(known) = frame.known
            && let Some(pair) = self.pairs.get_mut(known.pair)
        {
            if pair.calls == 0 {
                pair.first = known;
            }
            pair.calls += 1;
        }
    }

    /// Closes a scope. Returns `None` if it was presumed leaked.
    pub(super) fn remove(&mut self, serial: u64) -> Option<OpenCall> {
        let place = self.open.iter().rposition(|frame| frame.serial == serial)?;
        let frame = self.open.remove(place);
        self.leave(&frame);
        Some(frame)
    }

    fn leave(&mut self, frame: &OpenCall) {
        if let Some(known) = frame.known
            && let Some(pair) = self.pairs.get_mut(known.pair)
        {
            pair.calls = pair.calls.saturating_sub(1);
        }
    }

    /// Returns the node of a call that opens, and whether another call of its caller and callee is open: it is counted on
    /// the node of that one.
    fn find(&mut self, caller: Caller, name: u32) -> Option<(KnownNode, bool)> {
        let path = (caller.node, name);
        let known = if let Some(known) = self.by_path.get(&path) {
            *known
        } else {
            let pair = (caller.name, name);
            let index = self.by_pair.get(&pair).copied();
            if let Some(open) = self.open_call(pair, index) {
                return Some((open, true));
            }
            self.new_path(caller, name)?
        };
        // By the node's pair, which is not that of the call if there are too many pairs.
        match self.open_call(known.node.pair, Some(known.pair)) {
            Some(open) => Some((open, true)),
            None => Some((known, false)),
        }
    }

    /// Returns the node of a path, and remembers it.
    fn new_path(&mut self, caller: Caller, name: u32) -> Option<KnownNode> {
        let node = registry::node(caller, name)?;
        let known = self.known(node.id, || Some(node))?;
        if self.by_path.len() >= MAX_KNOWN {
            self.by_path.clear();
        }
        if self.by_path.try_reserve(1).is_ok() {
            self.by_path.insert((caller.node, name), known);
        }
        Some(known)
    }

    /// Returns the node of an open call of this pair, on this thread or around an entered handle. `index` is that of the
    /// pair, if the thread knows it.
    fn open_call(&mut self, pair: Pair, index: Option<usize>) -> Option<KnownNode> {
        let open = index.and_then(|index| self.pairs.get(index));
        if let Some(open) = open.filter(|open| open.calls > 0) {
            return Some(open.first);
        }
        let mut around = None;
        with_entered(|shared| {
            let call = shared.calls.iter().find(|(open, _)| *open == pair);
            around = call.map(|(_, node)| *node).or(around);
        });
        let node = around?;
        self.known(node, || registry::by_id(node))
    }

    /// Returns the node of calls of a name whose caller is not known.
    pub(super) fn known_root(&mut self, name: u32) -> Option<KnownNode> {
        let node = registry::node(Caller::NONE, name)?;
        self.known(node.id, || Some(node))
    }

    /// Returns a node as this thread knows it, which `find` looks up for the first time. Returns `None` if there is no
    /// memory.
    pub(super) fn known(
        &mut self,
        id: u32,
        find: impl FnOnce() -> Option<&'static Node>,
    ) -> Option<KnownNode> {
        if let Some(known) = self.by_node.get(&id) {
            return Some(*known);
        }
        self.by_node.try_reserve(1).ok()?;
        self.by_pair.try_reserve(1).ok()?;
        self.pairs.try_reserve(1).ok()?;
        let node = find()?;
        let known = KnownNode {
            node,
            cell: registry::new_cell(node)?,
            pair: *self.by_pair.entry(node.pair).or_insert(self.pairs.len()),
        };
        if known.pair == self.pairs.len() {
            self.pairs.push(OpenPair {
                calls: 0,
                first: known,
            });
        }
        self.by_node.insert(id, known);
        Some(known)
    }

    /// Returns the cells of the thread.
    pub(super) fn into_cells(self) -> impl Iterator<Item = &'static NodeCell> {
        self.by_node.into_values().map(|known| known.cell)
    }
}
