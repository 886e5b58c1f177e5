//! All pairs of caller and callee, on all threads.

use std::collections::HashMap;

use super::{Edge, NO_CALLER};
use crate::diagnostics;
use crate::stats::{EdgeCell, EdgeTotals};
use crate::sync::{Lock, ReentrancyGuard};

/// The largest number of pairs. The calls of further ones are counted with the caller [`OTHER`].
const MAX_EDGES: usize = 1 << 14;
/// The caller of pairs beyond the bound.
pub(crate) const OTHER: u32 = NO_CALLER - 1;
/// Cells that are allocated at once.
const CHUNK: usize = 32;

/// The cells of all threads, and what ended threads have counted.
#[derive(Default)]
struct Registry {
    /// All pairs, with the counts of ended threads.
    totals: Option<HashMap<Edge, EdgeTotals>>,
    /// Cells are never freed. One that no thread uses has no counts.
    cells: Vec<&'static EdgeCell>,
    free: Vec<&'static EdgeCell>,
}

static REGISTRY: Lock<Registry> = Lock::with(Registry::NEW, Registry::default);

impl Registry {
    const NEW: Self = Self {
        totals: None,
        cells: Vec::new(),
        free: Vec::new(),
    };
}

/// Admits a pair, or returns the one that its calls are counted as if there are too many.
pub(super) fn admit(edge: Edge) -> Edge {
    let mut registry = REGISTRY.lock();
    let totals = registry.totals.get_or_insert_default();
    let is_known = totals.contains_key(&edge);
    let is_full = totals.len() >= MAX_EDGES || totals.try_reserve(1).is_err();
    if is_known || !is_full {
        totals.entry(edge).or_default();
        return edge;
    }
    drop(registry);
    diagnostics::warn_once(&format!(
        "there are more than {MAX_EDGES} pairs of caller and callee; calls of further ones are counted with the caller \
         `(other callers)`"
    ));
    (OTHER, edge.1)
}

/// Returns a cell that only the calling thread writes to. Returns `None` if there is no memory.
pub(super) fn new_cell(edge: Edge) -> Option<&'static EdgeCell> {
    let mut registry = REGISTRY.lock();
    if registry.free.is_empty() {
        let mut chunk: Vec<EdgeCell> = Vec::new();
        chunk.try_reserve_exact(CHUNK).ok()?;
        registry.cells.try_reserve(CHUNK).ok()?;
        // Room for all cells, so that a thread that ends can return its own.
        let all = registry.cells.len() + CHUNK;
        registry.free.try_reserve(all).ok()?;
        chunk.resize_with(CHUNK, EdgeCell::new);
        for cell in &*chunk.leak() {
            registry.cells.push(cell);
            registry.free.push(cell);
        }
    }
    let cell = registry.free.pop()?;
    cell.set_names(edge);
    Some(cell)
}

/// Moves the counts of cells to the totals, and frees the cells for other threads.
pub(super) fn retire(cells: impl Iterator<Item = &'static EdgeCell>) {
    let mut guard = REGISTRY.lock();
    let registry = &mut *guard;
    let totals = registry.totals.get_or_insert_default();
    for cell in cells {
        cell.drain_into(totals.entry(cell.names()).or_default());
        registry.free.push(cell);
    }
}

/// Returns the counts of all pairs that were called.
pub(crate) fn all() -> Vec<(Edge, EdgeTotals)> {
    let _reentrancy = ReentrancyGuard::try_enter();
    let registry = REGISTRY.lock();
    let mut totals = registry.totals.clone().unwrap_or_default();
    for cell in &registry.cells {
        cell.read_into(totals.entry(cell.names()).or_default());
    }
    drop(registry);
    totals
        .into_iter()
        .filter(|(_, totals)| totals.calls > 0)
        .collect()
}
