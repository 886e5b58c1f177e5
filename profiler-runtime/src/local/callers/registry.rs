//! All nodes of the call tree, and their counts on all threads.
//!
//! # Forks
//!
//! A child that was forked while another thread held the lock gets a new registry. Threads keep the ids of nodes, so the
//! new registry must have the same nodes. They are a linked list that only grows, and so are the cells. The counts of
//! ended threads are lost then, as those of names are.

use std::collections::HashMap;
use std::iter;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

use profiler_host::diagnostics;
use profiler_host::sync::{Lock, ReentrancyGuard};

use crate::local::shared_scope::{Caller, Pair};
use crate::name::MAX_NAMES;
use crate::stats::{CallKind, NodeCell, NodeTotals};

/// The caller of a scope without an enclosing scope: the id of no name and of no node.
pub(crate) const NO_CALLER: u32 = u32::MAX;
/// The caller of calls beyond both bounds: the id of no name and of no node.
const OTHER: u32 = NO_CALLER - 1;

/// The largest number of paths, besides those of a single call. Calls on further ones have a node for each pair of caller
/// and callee, whatever called the caller.
const MAX_PATHS: usize = 1 << 14;
/// The largest number of such pairs. The calls of further ones have a node for each callee, with the caller [`OTHER`].
const MAX_PAIRS: usize = 1 << 16;
const MAX_NODES: usize = MAX_PATHS + MAX_PAIRS + 2 * MAX_NAMES;
const _: () = assert!(MAX_NODES < 1 << 30, "`CountedCall` has 30 bits");
const _: () = assert!(MAX_NODES + MAX_NAMES < OTHER as usize, "see `any_path`");
/// Cells that are allocated at once.
const CHUNK: usize = 32;

/// One path: a node of the call tree. Nodes are never freed.
#[derive(Debug)]
pub(crate) struct Node {
    /// Counted up from 0, so that a node comes after its parent.
    pub(super) id: u32,
    /// The node of the caller, [`NO_CALLER`], [`OTHER`], or [`any_path`] of the caller's name.
    parent: u32,
    /// The names of caller and callee.
    pub(super) pair: Pair,
    /// `true` if the callee is also further up on the path.
    pub(super) shows_recursion: bool,
    /// `true` once a call made here was on a path beyond the bound.
    pub(super) is_cut: AtomicBool,
    /// The node that was made before this one.
    previous: Option<&'static Self>,
}

/// What is known of the caller of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeParent {
    /// There is none.
    NoCaller,
    /// The node of the caller, which comes before this one.
    Node(u32),
    /// The name of the caller, on paths beyond the bound.
    Name(u32),
    /// There are too many pairs of caller and callee.
    Other,
}

/// Stands for the nodes of a name as callers, on paths beyond the bound: the id of no node.
fn any_path(name: u32) -> u32 {
    OTHER - 1 - name
}

/// Cells that were allocated together, and a link to those that were before.
struct CellChunk {
    cells: [NodeCell; CHUNK],
    previous: Option<&'static Self>,
}

/// The last node, and the last chunk of cells. Changed under the lock.
///
/// The stores are `Release` and the loads `Acquire`, so that a forked child finds complete values.
static LAST_NODE: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());
static LAST_CHUNK: AtomicPtr<CellChunk> = AtomicPtr::new(ptr::null_mut());

struct Registry {
    by_path: Option<HashMap<(u32, u32), &'static Node>>,
    /// By id.
    nodes: Vec<&'static Node>,
    /// The counts of ended threads, by id.
    totals: Vec<NodeTotals>,
    /// The nodes of paths, and those of pairs.
    paths: usize,
    pairs: usize,
    /// The cells of all threads.
    cells: usize,
    /// Those that no thread uses, with room for all.
    free: Vec<&'static NodeCell>,
}

static REGISTRY: Lock<Registry> = Lock::with(Registry::NEW, Registry::after_fork);

fn chunks() -> impl Iterator<Item = &'static CellChunk> {
    // SAFETY: the pointer is null or points to a complete chunk, see `LAST_CHUNK`, and chunks are never freed.
    let last = unsafe { LAST_CHUNK.load(Acquire).as_ref() };
    iter::successors(last, |chunk| chunk.previous)
}

fn all_cells() -> impl Iterator<Item = &'static NodeCell> {
    chunks().flat_map(|chunk| &chunk.cells)
}

/// Moves a value to memory that is never freed. Returns `None` if there is none.
fn leaked<T>(value: T) -> Option<&'static T> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(1).ok()?;
    memory.push(value);
    memory.leak().first()
}

impl Registry {
    const NEW: Self = Self {
        by_path: None,
        nodes: Vec::new(),
        totals: Vec::new(),
        paths: 0,
        pairs: 0,
        cells: 0,
        free: Vec::new(),
    };

    fn after_fork() -> Self {
        // SAFETY: the pointer is null or points to a complete node, see `LAST_NODE`, and nodes are never freed.
        let last = unsafe { LAST_NODE.load(Acquire).as_ref() };
        let mut nodes: Vec<&'static Node> = iter::successors(last, |node| node.previous).collect();
        nodes.reverse();
        let cells = chunks().count() * CHUNK;
        let mut free = Vec::with_capacity(cells);
        free.extend(all_cells().filter(|cell| cell.node().is_none()));
        Self {
            by_path: Some(nodes.iter().map(|node| (node.path(), *node)).collect()),
            totals: vec![NodeTotals::default(); nodes.len()],
            paths: nodes.iter().filter(|node| node.is_path()).count(),
            pairs: nodes.iter().filter(|node| node.is_pair()).count(),
            nodes,
            cells,
            free,
        }
    }

    fn get(&self, path: (u32, u32)) -> Option<&'static Node> {
        self.by_path.as_ref()?.get(&path).copied()
    }

    /// Adds a node for calls of a pair of names. Returns `None` if there is no memory for it.
    fn add(&mut self, parent: u32, pair: Pair) -> Option<&'static Node> {
        let by_path = self.by_path.get_or_insert_default();
        by_path.try_reserve(1).ok()?;
        self.nodes.try_reserve(1).ok()?;
        self.totals.try_reserve(1).ok()?;
        let around = self.nodes.get(parent as usize).copied();
        let mut callers =
            iter::successors(around, |node| self.nodes.get(node.parent as usize).copied());
        let (caller, name) = pair;
        let node = leaked(Node {
            id: u32::try_from(self.nodes.len()).ok()?,
            parent,
            pair,
            shows_recursion: caller == name || callers.any(|caller| caller.pair.1 == name),
            is_cut: AtomicBool::new(false),
            previous: self.nodes.last().copied(),
        })?;
        LAST_NODE.store(ptr::from_ref(node).cast_mut(), Release);
        by_path.insert(node.path(), node);
        self.nodes.push(node);
        self.totals.push(NodeTotals::default());
        self.paths += usize::from(node.is_path());
        self.pairs += usize::from(node.is_pair());
        Some(node)
    }

    /// Adds cells. Returns `None` if there is no memory for them.
    fn add_cells(&mut self) -> Option<()> {
        // Room for all cells, so that a thread that ends can return its own.
        self.free.try_reserve(self.cells + CHUNK).ok()?;
        let chunk = leaked(CellChunk {
            cells: [const { NodeCell::new() }; CHUNK],
            previous: chunks().next(),
        })?;
        for cell in &chunk.cells {
            cell.set_node(None);
            self.free.push(cell);
        }
        self.cells += CHUNK;
        LAST_CHUNK.store(ptr::from_ref(chunk).cast_mut(), Release);
        Some(())
    }
}

impl Node {
    fn path(&self) -> (u32, u32) {
        (self.parent, self.pair.1)
    }

    pub(super) fn parent(&self) -> NodeParent {
        match self.parent {
            NO_CALLER => NodeParent::NoCaller,
            OTHER => NodeParent::Other,
            _ if self.parent == any_path(self.pair.0) => NodeParent::Name(self.pair.0),
            node => NodeParent::Node(node),
        }
    }

    fn is_path(&self) -> bool {
        matches!(self.parent(), NodeParent::NoCaller | NodeParent::Node(_))
    }

    fn is_pair(&self) -> bool {
        matches!(self.parent(), NodeParent::Name(_))
    }

    /// Returns the kind of a call that is counted here.
    pub(super) fn kind(&self, is_recursive: bool, is_outermost: bool) -> CallKind {
        if is_recursive {
            CallKind::Recursive
        } else if is_outermost || self.shows_recursion {
            CallKind::Primitive
        } else {
            CallKind::Hidden
        }
    }
}

/// Returns the node for the calls of a name by a caller. Returns `None` if there is no memory.
pub(super) fn node(caller: Caller, name: u32) -> Option<&'static Node> {
    let mut registry = REGISTRY.lock();
    let is_root = caller.node == NO_CALLER;
    let pair = (if is_root { NO_CALLER } else { caller.name }, name);
    if let Some(node) = registry.get((caller.node, name)) {
        return Some(node);
    }
    if registry.paths < MAX_PATHS || is_root {
        return registry.add(caller.node, pair);
    }
    if let Some(node) = registry.nodes.get(caller.node as usize) {
        node.is_cut.store(true, Relaxed);
    }
    let any_path = any_path(pair.0);
    let beyond = if let Some(node) = registry.get((any_path, name)) {
        node
    } else if registry.pairs < MAX_PAIRS {
        registry.add(any_path, pair)?
    } else {
        match registry.get((OTHER, name)) {
            Some(node) => node,
            None => registry.add(OTHER, (OTHER, name))?,
        }
    };
    let has_other = beyond.parent == OTHER;
    drop(registry);
    diagnostics::warn_once(&format!(
        "there are more than {MAX_PATHS} call paths: calls on further ones are counted by caller and callee alone, which \
         stand below `(other callers)` in the call tree"
    ));
    if has_other {
        diagnostics::warn_once(&format!(
            "there are more than {MAX_PAIRS} pairs of caller and callee on these paths: calls of further ones have the \
             caller `(other callers)`"
        ));
    }
    Some(beyond)
}

/// Returns the node with this id.
pub(super) fn by_id(id: u32) -> Option<&'static Node> {
    REGISTRY.lock().nodes.get(id as usize).copied()
}

/// Returns a cell that only the calling thread writes to. Returns `None` if there is no memory.
pub(super) fn new_cell(node: &Node) -> Option<&'static NodeCell> {
    let mut registry = REGISTRY.lock();
    if registry.free.is_empty() {
        registry.add_cells()?;
    }
    let cell = registry.free.pop()?;
    cell.set_node(Some(node.id));
    Some(cell)
}

/// Counts a call on a thread that has no cells.
pub(super) fn count_without_cell(node: &Node, (elapsed, own): (i64, i64), kind: CallKind) {
    let mut registry = REGISTRY.lock();
    if let Some(totals) = registry.totals.get_mut(node.id as usize) {
        totals.count(elapsed, own, kind);
    }
}

/// Moves the counts of cells to the totals, and frees the cells for other threads.
pub(super) fn retire(cells: impl Iterator<Item = &'static NodeCell>) {
    let mut guard = REGISTRY.lock();
    let registry = &mut *guard;
    for cell in cells {
        let totals = cell.node().map(|node| node as usize);
        if let Some(totals) = totals.and_then(|node| registry.totals.get_mut(node)) {
            cell.drain_into(totals);
        }
        cell.set_node(None);
        registry.free.push(cell);
    }
}

/// Returns how many nodes there are.
pub(crate) fn nodes() -> usize {
    REGISTRY.lock().nodes.len()
}

/// Returns all nodes in the order of their ids, with their counts on all threads.
pub(super) fn all() -> Vec<(&'static Node, NodeTotals)> {
    let _reentrancy = ReentrancyGuard::try_enter();
    let registry = REGISTRY.lock();
    let nodes = registry.nodes.iter().copied();
    let mut all: Vec<_> = nodes.zip(registry.totals.iter().copied()).collect();
    for cell in all_cells() {
        let node = cell.node().and_then(|node| all.get_mut(node as usize));
        if let Some((_, totals)) = node {
            cell.read_into(totals);
        }
    }
    all
}
