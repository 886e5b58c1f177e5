//! The callers of the running statistics, while they are turned on: a call tree of the whole program.
//!
//! Each thread then keeps a stack of its open scopes, with their nodes, and a cell for each node whose calls it has
//! counted. All calls take the slow path, which is what this costs.
//!
//! # Nodes
//!
//! A node is a path: the node of the caller and the name of the callee. Recursion would make paths of any length, and a
//! function that calls itself twice a number of paths that grows exponentially. So a call is *recursive* if another call
//! of the same caller and callee is open, on its thread or along handles. It is counted on the node of that call, and what
//! it calls in turn is placed below. A path then has each pair of caller and callee once. The sums over all nodes of a
//! pair are what they would be without this rule, as are those of a function, except that a node may be inside another
//! call of its function that its path lacks: such calls are *hidden*, and counted as well.
//!
//! The number of paths is bounded. Calls on further ones are counted on a node for each pair of caller and callee, so that
//! the sums over all nodes of a pair remain what they are; only what called the caller is not known of them.

mod open;
mod registry;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use profiler_host::sync::ReentrancyGuard;

use super::Innermost;
use super::links::{parent_of, with_entered};
use super::node_gpu::{self, NodeGpuTimes};
use super::shared_scope::{Caller, SharedCall};
use super::{Block, ThreadState, with_state};
use crate::stats::{CallKind, NodeTotals};
use open::Callers;
use registry::NO_CALLER;
pub(crate) use registry::{NodeParent, nodes};

impl Caller {
    const NONE: Self = Self {
        node: NO_CALLER,
        name: NO_CALLER,
    };

    /// Returns the name, if callers are counted.
    pub(super) fn name(self) -> Option<u32> {
        (self.name != NO_CALLER).then_some(self.name)
    }

    /// Returns the node, if callers are counted and there was memory for it.
    pub(super) fn node(self) -> Option<u32> {
        (self.node != NO_CALLER).then_some(self.node)
    }
}

/// The call of a future, from its first poll to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FutureCall {
    node: u32,
    is_recursive: bool,
}

#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
impl FutureCall {
    /// Stands for no call in the word of [`raw`](Self::raw).
    pub(crate) const NONE: u64 = u64::MAX;

    /// Returns the call in one word.
    pub(crate) fn raw(self) -> u64 {
        u64::from(self.node) << 1 | u64::from(self.is_recursive)
    }

    /// Returns the call in a word, unless it is [`NONE`](Self::NONE).
    pub(crate) fn from_raw(raw: u64) -> Option<Self> {
        let node = u32::try_from(raw >> 1).ok()?;
        Some(Self {
            node,
            is_recursive: raw & 1 != 0,
        })
    }
}

/// The node that a call was counted on, and the kind of the call, in one word: the end of a GPU scope has no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountedCall(u32);

impl CountedCall {
    /// Callers are not counted.
    pub(crate) const NONE: Self = Self(u32::MAX);
    const KIND_BITS: u32 = 2;

    /// There are fewer nodes than this has bits for: see [`registry`].
    fn new(node: u32, kind: CallKind) -> Self {
        Self(node << Self::KIND_BITS | kind as u32)
    }

    pub(crate) fn node(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0 >> Self::KIND_BITS)
    }

    /// Returns `true` if another call of its caller and callee was open around it.
    pub(crate) fn is_recursive(self) -> bool {
        self.0 & 3 == CallKind::Recursive as u32
    }
}

/// The counts of a node on all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeCounts {
    pub(crate) parent: NodeParent,
    pub(crate) name: u32,
    /// `true` if calls made here are on paths beyond the bound.
    pub(crate) is_cut: bool,
    pub(crate) cpu: NodeTotals,
    pub(crate) cuda: NodeGpuTimes,
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
pub(crate) fn opened(name: u32, serial: u64, outer: Innermost) -> Option<FutureCall> {
    let (enclosing, shared) = parent_of(outer);
    with_callers(|callers| {
        callers.forget_above(enclosing);
        let caller = match &shared {
            Some(shared) => shared.caller,
            None => callers.caller(enclosing),
        };
        let frame = callers.enter(serial, caller, name);
        Some(FutureCall {
            node: frame.known?.node.id,
            is_recursive: frame.is_recursive,
        })
    })
    .flatten()
}

/// Notes that a later poll of a future begins.
pub(crate) fn resumed(name: u32, serial: u64, outer: Innermost, call: FutureCall) {
    let (enclosing, _) = parent_of(outer);
    with_callers(|callers| {
        callers.forget_above(enclosing);
        callers.resume(serial, name, call.node);
    });
}

/// Notes that a poll has ended.
pub(crate) fn suspended(serial: u64) {
    with_callers(|callers| callers.remove(serial));
}

/// Counts a scope that has closed, with its total and self time. `is_outermost` is `true` if no other scope of the name is
/// open around it.
pub(crate) fn closed(name: u32, serial: u64, times: (i64, i64), is_outermost: bool) -> CountedCall {
    let counted = with_callers(|callers| {
        let frame = callers.remove(serial)?;
        Some(frame.known?.count(times, frame.is_recursive, is_outermost))
    });
    match counted.flatten() {
        Some(counted) => counted,
        None => finished(name, None, times, is_outermost),
    }
}

/// Counts a future that has ended. Without a call, its caller is not known: it was presumed leaked, or its thread had
/// ended.
pub(crate) fn finished(
    name: u32,
    call: Option<FutureCall>,
    times: (i64, i64),
    is_outermost: bool,
) -> CountedCall {
    let _reentrancy = ReentrancyGuard::try_enter();
    let is_recursive = call.is_some_and(|call| call.is_recursive);
    let on_thread = with_callers(|callers| {
        let known = match call {
            Some(call) => callers.known(call.node, || registry::by_id(call.node)),
            None => callers.known_root(name),
        };
        Some(known?.count(times, is_recursive, is_outermost))
    });
    let without_thread = || {
        let node = match call {
            Some(call) => registry::by_id(call.node),
            None => registry::node(Caller::NONE, name),
        };
        let node = node?;
        let kind = node.kind(is_recursive, is_outermost);
        registry::count_without_cell(node, times, kind);
        Some(CountedCall::new(node.id, kind))
    };
    let counted = on_thread.flatten().or_else(without_thread);
    counted.unwrap_or(CountedCall::NONE)
}

/// Returns the open scope with this serial as a caller, and the calls that are open around it and by it, each pair once.
pub(super) fn chain(serial: u64) -> (Caller, Arc<[SharedCall]>) {
    let chain = with_known(|callers| {
        let mut calls: Vec<SharedCall> = Vec::new();
        // Otherwise the calls would double with each handle that is taken inside of an entered one.
        let mut add = |others: &mut dyn Iterator<Item = SharedCall>| {
            calls.extend(others);
            calls.sort_by_key(|(pair, _)| *pair);
            calls.dedup_by_key(|(pair, _)| *pair);
        };
        add(&mut callers.up_to(serial));
        with_entered(|shared| add(&mut shared.calls.iter().copied()));
        (callers.caller(serial), calls.into())
    });
    chain.unwrap_or_else(|| (Caller::NONE, [].into()))
}

/// Moves the counts of an ending thread to the totals of all threads.
pub(super) fn retire(block: &Block) {
    let callers = block.callers.try_borrow_mut().ok();
    if let Some(callers) = callers.and_then(|mut callers| callers.take()) {
        registry::retire(callers.into_cells());
    }
}

/// Returns the counts of all nodes; a node's index is its id.
pub(crate) fn all() -> Vec<NodeCounts> {
    // Read before the CPU times: a call counts its CPU time first, so no call is seen with its GPU time alone.
    let cuda = node_gpu::all();
    let counts = |(node, cpu): (&registry::Node, NodeTotals)| NodeCounts {
        parent: node.parent(),
        name: node.pair.1,
        is_cut: node.is_cut.load(Relaxed),
        cpu,
        cuda: cuda.get(node.id as usize).copied().unwrap_or_default(),
    };
    registry::all().into_iter().map(counts).collect()
}

/// A thread's callers, or `None` if it has counted none.
pub(super) type CallersCell = RefCell<Option<Box<Callers>>>;
