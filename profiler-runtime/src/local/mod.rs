//! What each thread keeps for itself: its open scopes and its cells.
//!
//! [`ThreadState`] is static thread-local storage, which every thread pays for out of its stack, measured or not: a few
//! words. The rest is a [`Block`] on the heap that one of them points to, made by the thread's first measured
//! call and handed from threads that end to threads that begin.
//!
//! `ThreadState` needs no destructor, so that nothing has to be checked before it is touched. The destructor of [`ThreadResources`]
//! has the block released when the thread ends.

mod block;
mod ending;

use std::cell::Cell;

use crate::log::LogRecord;
use crate::name;
use crate::stats::StatCell;
use crate::sync::ReentrancyGuard;
use crate::sync::ring::Producer;
pub use block::blocks_made;
use block::{Block, Cells};

/// What [`ThreadState::top`] is on a thread that has ended: the number of no scope.
pub(crate) const ENDED: u64 = u64::MAX;

/// What a measured call reads and writes.
///
/// There is no stack of open scopes: each guard keeps what its opening replaced, and puts it back.
// Apart from each other: side by side they would be read at once, and a processor waits to read at once
// what was written one after the other.
#[repr(C)]
pub(crate) struct ThreadState {
    /// The number of the scope that was opened last.
    pub(crate) serial: Cell<u64>,
    _apart: u64,
    /// How many ticks the children of the innermost open scope took so far.
    pub(crate) children: Cell<i64>,
    _apart_too: u64,
    /// The number of the innermost open scope; zero where none is open.
    pub(crate) top: Cell<u64>,
    /// The number of the innermost poll: what is older belongs to an earlier one.
    pub(crate) floor: Cell<u64>,
    /// The cells of the block; those of nobody where there is none, so that a call need not ask.
    cells: Cell<&'static Cells>,
    block: Cell<Option<&'static Block>>,
}

/// Releases the thread's block when the thread ends.
struct ThreadResources;

impl Drop for ThreadResources {
    fn drop(&mut self) {
        // Destructors of other thread-locals may still make measured calls: these find the block where it was.
        if !ending::release_after_destructors() {
            release();
        }
    }
}

thread_local! {
    static STATE: ThreadState = const {
        ThreadState {
            serial: Cell::new(0),
            _apart: 0,
            children: Cell::new(0),
            _apart_too: 0,
            top: Cell::new(0),
            floor: Cell::new(0),
            cells: Cell::new(Cells::none()),
            block: Cell::new(None),
        }
    };
    static RESOURCES: ThreadResources = const { ThreadResources };
}

/// Runs `f` on what measured calls touch. Nothing there is ever destroyed, so that this works to the
/// thread's very end: always `Some`, which the compiler knows too.
#[inline(always)]
pub(crate) fn with_state<T>(f: impl FnOnce(&ThreadState) -> T) -> Option<T> {
    STATE.try_with(f).ok()
}

impl ThreadState {
    /// The thread's cell for a name, if it is one of the first and has one already.
    #[inline(always)]
    pub(crate) fn cell(&self, id: u32) -> Option<&'static StatCell> {
        self.cells.get().get(id)
    }

    /// Returns the thread's block, made if it has none; none where the thread has ended, or where there is no
    /// memory for one.
    fn block(&self) -> Option<&'static Block> {
        self.block.get().or_else(|| self.begin())
    }

    #[cold]
    fn begin(&self) -> Option<&'static Block> {
        if self.top.get() == ENDED {
            return None;
        }
        let block = block::take()?;
        // Registers the destructor. Where that has run already, nobody would release the block.
        if RESOURCES.try_with(|_| ()).is_err() {
            block::put_back(block);
            return None;
        }
        self.block.set(Some(block));
        self.cells.set(&block.cells);
        Some(block)
    }
}

/// Takes what the thread keeps: folds its cells into their names, and leaves the block to other threads.
fn release() {
    let _busy = ReentrancyGuard::try_enter();
    with_state(|state| {
        // A guard that is still held must not touch its cell again. Before the block goes: what is called from
        // here on finds nothing of it.
        state.cells.set(Cells::none());
        state.top.set(ENDED);
        if let Some(block) = state.block.take() {
            block.retire_cells();
            block::put_back(block);
        }
    });
}

/// The number of the innermost open scope; zero where none is open.
pub(crate) fn innermost() -> u64 {
    with_state(|state| state.top.get())
        .filter(|top| *top != ENDED)
        .unwrap_or(0)
}

/// Takes all scopes younger than the one with this number for forgotten: calls of their names are not
/// made from within them any more. One that is closed later after all is told by its cell.
#[cold]
pub(crate) fn forget_above(serial: u64) {
    known_cells().for_each(|cell| cell.forget_above(serial));
}

/// The names of the scopes that are open up to the one with this number, outermost first: of each name the outermost
/// one.
#[cold]
pub(crate) fn open_names(up_to: u64) -> std::sync::Arc<[u32]> {
    #[allow(clippy::cast_possible_truncation, reason = "the number of a name")]
    let found = known_cells().map(|cell| (cell.outermost(), cell.id.get() as u32));
    let mut open: Vec<(u64, u32)> = found
        .filter(|(serial, _)| (1..=up_to).contains(serial))
        .collect();
    open.sort_unstable();
    open.into_iter().map(|(_, name)| name).collect()
}

/// Returns all cells that the thread has.
fn known_cells() -> impl Iterator<Item = &'static StatCell> {
    let block = with_state(|state| state.block.get()).flatten();
    block.into_iter().flat_map(Block::cells)
}

/// Returns whether the thread's cells have been given back: what it calls is counted without them.
pub(crate) fn has_ended() -> bool {
    with_state(|state| state.top.get() == ENDED).unwrap_or(true)
}

/// Why a thread has no cell for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCell {
    /// The thread is inside the profiler: what is called there is not measured.
    Reentrant,
    /// The thread has ended and keeps nothing any more, or there is no memory for what it would keep.
    Unavailable,
}

/// The calling thread's cell for a name, made on the first call.
pub(crate) fn cell(id: u32) -> Result<&'static StatCell, NoCell> {
    if let Some(cell) = with_state(|state| state.cell(id)).flatten() {
        return Ok(cell);
    }
    let _busy = ReentrancyGuard::try_enter().ok_or(NoCell::Reentrant)?;
    let slot = with_state(ThreadState::block)
        .flatten()
        .and_then(|block| block.slot(id));
    slot.and_then(|slot| known_or_made(slot, id))
        .ok_or(NoCell::Unavailable)
}

fn known_or_made(slot: &Cell<Option<&'static StatCell>>, id: u32) -> Option<&'static StatCell> {
    slot.get().or_else(|| {
        let cell = name::by_id(id)?.new_cell()?;
        slot.set(Some(cell));
        Some(cell)
    })
}

/// Runs `f` on the thread's end of its ring; `None` where the thread has ended.
pub(crate) fn with_ring<T>(f: impl FnOnce(&mut Option<Producer<LogRecord>>) -> T) -> Option<T> {
    let block = with_state(ThreadState::block).flatten()?;
    // Nothing that is called with the ring borrowed comes back here: it is claimed to be busy.
    block
        .ring
        .try_borrow_mut()
        .ok()
        .map(|mut ring| f(&mut ring))
}

/// What the thread has decided for a name it was given as text.
pub(crate) fn known_text(place: usize, text: &str) -> Option<u64> {
    let block = with_state(|state| state.block.get()).flatten()?;
    let texts = block.texts.try_borrow().ok()?;
    texts.get(&place)?.get(text).copied()
}

/// Keeps a decision for [`known_text`].
pub(crate) fn remember_text(place: usize, text: &str, decided: u64) {
    let Some(block) = with_state(ThreadState::block).flatten() else {
        return;
    };
    let Ok(mut texts) = block.texts.try_borrow_mut() else {
        return;
    };
    let texts = texts.entry(place).or_default();
    match texts.get_mut(text) {
        Some(known) => *known = decided,
        None => drop(texts.insert(text.into(), decided)),
    }
}
