//! Per-thread state: the open scopes of each thread and its statistics cells.
//!
//! Each block has a range of serials, so a scope that is closed on another thread, as by a coroutine that has moved, is not
//! the innermost one there, and the slow path finds out: see [`is_own`].
//!
//! [`ThreadState`] is static thread-local storage. Every thread of the program pays for it, measured or not, so it is a
//! few words. It needs no destructor, so that an access checks nothing. The rest is a [`Block`] on the heap, which the
//! thread's first measured call acquires and which other threads use again.
//!
//! # Open scopes
//!
//! There is no stack in memory. Each scope gets a serial number, counted up on its thread. Opening a scope
//! replaces `innermost` and `child_ticks`; the guard keeps the old values and restores them when it closes. A guard
//! whose serial is not `innermost` when it closes was dropped out of order. If its serial is smaller, younger guards are
//! still held (or leaked with `mem::forget`): the guard closes around them. If its serial is larger, the guard outlived
//! an older one, and there is nothing left to restore.
//!
//! # From the first call to the end of a thread
//!
//! 1. *No block.* The table of slots is empty, so that calls need not check for a block.
//! 2. *Attached.* The first measured call registers the destructor of [`ThreadResources`] and acquires a block.
//! 3. *Ending.* That destructor ran and scheduled [`release`]. The block stays attached, since destructors of other
//!    thread-locals may still make measured calls.
//! 4. *Ended.* [`release`] ran: `innermost` is [`Innermost::ENDED`], the table is the empty one again, and the block has been
//!    recycled. Calls from here on are counted in their names directly, under the names' locks.
//!
//! Only the thread itself reads and writes its state, so no memory ordering is involved. A block moves between threads
//! through the lock of the free list; a cell through the lock of its name.

mod block;
mod borrowed;
pub(crate) mod callers;
mod innermost;
mod links;
pub(crate) mod node_gpu;
mod ranges;
mod segment_nesting;
mod shared_scope;
mod slots;
mod table_cell;
mod teardown;
mod text_decisions;
mod thread_times;

use std::cell::Cell;
use std::sync::Arc;

use profiler_host::sync::ReentrancyGuard;
use profiler_host::sync::ring::Producer;

use crate::clock;
use crate::log_record::LogRecord;
use crate::name;
use crate::stats::{NoCellLeft, StatCell};
use block::Block;
pub use block::blocks_made;
pub(crate) use borrowed::borrowing_threads;
pub(crate) use innermost::{Innermost, SERIALS};
pub(crate) use links::{
    Place, child_closed, child_opened, disown, enter, entered, leave, names_around, note_times,
    place, presume_leaked_inside, resume_poll, suspend_poll,
};
pub(crate) use ranges::{begin_range, end_range, end_ranges_inside, first_range};
pub use shared_scope::HandleId;
pub(crate) use shared_scope::{FirstSegment, Segments, SharedScope, end_elsewhere};
use slots::CurrentTable;
pub(crate) use slots::{id_at, slot_index};
pub(crate) use thread_times::{
    begin_thread_time, calibrate_thread_time, end_thread_time, thread_time_cost,
};

/// The part of the per-thread state that a measured call reads and writes.
// Padded, so that the compiler does not load two fields at once: a wide load after two narrow stores defeats store forwarding.
#[repr(C)]
pub(crate) struct ThreadState {
    /// The serial of the youngest scope.
    pub(crate) last_serial: Cell<u64>,
    _padding: u64,
    /// The ticks that closed children of the innermost open scope took, plus the value at which that scope opened.
    pub(crate) child_ticks: Cell<i64>,
    _more_padding: u64,
    pub(crate) innermost: Cell<Innermost>,
    /// The serial of the innermost running poll; 0 if none is running. Older scopes were opened outside of that poll.
    pub(crate) innermost_poll: Cell<u64>,
    /// The table of the block, or an empty one if there is no block or the innermost entry has a link.
    slots: CurrentTable,
    /// The [cost](clock::cost) of a measurement, in ticks, while there is a block. A copy, since a program finds it here with
    /// fewer instructions than a static of another crate.
    pub(crate) clock_cost: Cell<u64>,
    /// The serial of the first scope before which [`sweep`] is due.
    next_sweep: Cell<u64>,
    block: Cell<Option<&'static Block>>,
}

/// After how many scopes a sweep is tried again that could not maintain each cell, since the thread was in the profiler.
const SWEEP_SOON: u64 = 1 << 16;

/// The number of scopes between two sweeps. So few that no count of a cell overflows meanwhile: see
/// [`StatCell::count_outermost`].
const SWEEP_EVERY: u64 = 1 << 26;

thread_local! {
    static STATE: ThreadState = const {
        ThreadState {
            last_serial: Cell::new(0),
            _padding: 0,
            child_ticks: Cell::new(0),
            _more_padding: 0,
            innermost: Cell::new(Innermost::NONE),
            innermost_poll: Cell::new(0),
            slots: CurrentTable::empty(),
            clock_cost: Cell::new(0),
            next_sweep: Cell::new(0),
            block: Cell::new(None),
        }
    };
    static RESOURCES: ThreadResources = const { ThreadResources };
}

/// Releases the thread's block when the thread ends.
struct ThreadResources;

impl Drop for ThreadResources {
    fn drop(&mut self) {
        // Destructors of other thread-locals may still make measured calls. Keep the block until they have run.
        if !teardown::schedule_release() {
            release();
        }
    }
}

/// Runs `f` on the thread's state. Always returns `Some`, since the state is never destroyed; the compiler knows that too, and
/// removes the check.
#[inline(always)]
pub(crate) fn with_state<T>(f: impl FnOnce(&ThreadState) -> T) -> Option<T> {
    STATE.try_with(f).ok()
}

impl ThreadState {
    /// Returns the thread's cell for the name with this [`slot_index`], if the thread has called it before.
    #[inline(always)]
    pub(crate) fn cell_at(&self, index: usize) -> Option<&'static StatCell> {
        self.slots.cell(index)
    }

    /// Returns `true` if the next scope must take the slow path, which calls [`sweep`].
    #[inline(always)]
    pub(crate) fn must_sweep(&self) -> bool {
        self.last_serial.get() >= self.next_sweep.get()
    }

    /// Returns the thread's block, and acquires it if necessary. Returns `None` if the thread has ended, or if there is
    /// no memory.
    fn block(&self) -> Option<&'static Block> {
        self.block.get().or_else(|| self.attach_block())
    }

    #[cold]
    fn attach_block(&self) -> Option<&'static Block> {
        if self.innermost.get() == Innermost::ENDED {
            return None;
        }
        let block = block::acquire()?;
        // Registers the destructor. If that has run already, nothing would release the block.
        if RESOURCES.try_with(|_| ()).is_err() {
            block::recycle(block);
            return None;
        }
        self.block.set(Some(block));
        self.clock_cost.set(clock::cost());
        block.serial_before.set(block.last_serial.get());
        let last = self.last_serial.get().max(block.last_serial.get());
        self.last_serial.set(last);
        self.next_sweep.set(self.last_serial.get() + SWEEP_EVERY);
        self.follow_innermost();
        Some(block)
    }
}

/// Ends the thread's state: moves the counts of its cells to their names, and recycles its block.
fn release() {
    let _reentrancy = ReentrancyGuard::try_enter();
    with_state(|state| {
        // First, so that calls from within the rest (a measured allocator, destructors of loggers) do not find the
        // block, and guards that are still held do not write to cells that other threads may have by then.
        state.slots.set(&[]);
        state.innermost.set(Innermost::ENDED);
        if let Some(block) = state.block.take() {
            block.last_serial.set(state.last_serial.get());
            block.retire_cells();
            block::recycle(block);
        }
    });
}

/// Returns `true` if the scope with this serial was opened on this thread, which has not ended.
pub(crate) fn is_own(serial: u64) -> bool {
    // A thread without a block has opened no scope. Serials that it took for itself may belong to another thread's block, too.
    let is_own = |state: &ThreadState| {
        let block = state.block.get();
        block.is_some_and(|block| {
            serial > block.serial_before.get() && serial <= state.last_serial.get()
        })
    };
    with_state(is_own).unwrap_or(true)
}

/// Returns `true` if the thread's cells have been released.
pub(crate) fn has_ended() -> bool {
    with_state(|state| state.innermost.get() == Innermost::ENDED).unwrap_or(true)
}

/// Returns what is innermost on this thread: nothing, if the thread has ended.
pub(crate) fn innermost() -> Innermost {
    with_state(|state| state.innermost.get())
        .filter(|innermost| *innermost != Innermost::ENDED)
        .unwrap_or(Innermost::NONE)
}

/// Presumes that all scopes younger than `serial` were leaked, so that later calls of their names do not count as
/// recursive. If such a scope closes after all, its cell undoes this.
#[cold]
pub(crate) fn presume_leaked_above(serial: u64) {
    all_cells().for_each(|cell| cell.presume_leaked_above(serial));
}

/// Returns the names of the open scopes whose serials are at most `up_to`, outermost first. A name with several open
/// scopes is listed once, at its outermost one.
#[cold]
pub(crate) fn open_names(up_to: u64) -> Arc<[u32]> {
    let outermost = all_cells().map(|cell| (cell.outermost(), cell.name()));
    let mut open: Vec<(u64, u32)> = outermost
        .filter(|(serial, _)| (1..=up_to).contains(serial))
        .collect();
    open.sort_unstable();
    open.into_iter().map(|(_, name)| name).collect()
}

/// Returns the name of the innermost open scope or poll of this thread, unless a call of its name is open around it. `names` are
/// those of all around it and its own.
fn name_of_outermost(serial: u64, names: &[u32]) -> Option<u32> {
    let block = with_state(|state| state.block.get()).flatten()?;
    let innermost = *names.last()?;
    let cell = block.cell(innermost)?;
    (cell.outermost() == serial).then_some(innermost)
}

/// Returns what threads share of the innermost open scope, or of the innermost entered handle's. Returns `None` if no scope is
/// open.
pub(crate) fn share_innermost() -> Option<Arc<SharedScope>> {
    let innermost = innermost();
    if innermost == Innermost::NONE {
        return None;
    }
    let _reentrancy = ReentrancyGuard::try_enter();
    if let Some(serial) = innermost.if_linked() {
        return links::scope_of(serial);
    }
    let serial = innermost.serial();
    let (names, chain) = (names_around(innermost), callers::chain(serial));
    let name = chain.0.name();
    let name = name.or_else(|| name_of_outermost(serial, &names));
    let scope = SharedScope::new(name, names, chain);
    scope.note_unnamed(serial);
    links::own(serial, &scope).then_some(scope)
}

/// Maintains all cells of the thread that need it, if that is due: the fast path does not check for overflows.
pub(crate) fn sweep() {
    let is_due = |state: &ThreadState| {
        let is_due = state.must_sweep() && state.block.get().is_some();
        if is_due {
            state.next_sweep.set(state.last_serial.get() + SWEEP_EVERY);
        }
        is_due
    };
    if !with_state(is_due).unwrap_or(false) {
        return;
    }
    let mut full = all_cells().filter(|cell| cell.is_nearly_full());
    if !full.all(name::maintain) {
        with_state(|state| state.next_sweep.set(state.last_serial.get() + SWEEP_SOON));
    }
}

fn all_cells() -> impl Iterator<Item = &'static StatCell> {
    let block = with_state(|state| state.block.get()).flatten();
    block.into_iter().flat_map(Block::cells)
}

/// Why a thread has no cell for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCell {
    /// The call comes from within the profiler, where calls are not measured.
    Reentrant,
    /// The thread has ended, or there is no memory. Calls are counted in their names directly.
    Unavailable,
}

/// Returns the calling thread's cell for a name, and creates it on the first call. The caller must call
/// [`give_back`] when it does not use the cell any more.
pub(crate) fn cell(id: u32) -> Result<&'static StatCell, NoCell> {
    if let Some(cell) = with_state(|state| state.cell_at(slot_index(id) as usize)).flatten() {
        return Ok(cell);
    }
    let _reentrancy = ReentrancyGuard::try_enter().ok_or(NoCell::Reentrant)?;
    let block = with_state(ThreadState::block).flatten();
    let find = |block: &Block| block.slots.cell(id).or_else(|| block.borrowed.again(id));
    let cell = block.and_then(|block| find(block).or_else(|| create(block, id)));
    cell.ok_or(NoCell::Unavailable)
}

/// [`cell`] for a path that takes locks: refuses each call from within the profiler. A signal handler may have interrupted
/// its own thread where that holds one of them.
pub(crate) fn cell_outside(id: u32) -> Result<&'static StatCell, NoCell> {
    if ReentrancyGuard::is_entered() {
        return Err(NoCell::Reentrant);
    }
    cell(id)
}

/// Ends the use of a cell from [`cell`]: if it is a borrowed one, another name may use it.
#[inline]
pub(crate) fn give_back(cell: &StatCell) {
    if let Some(block) = with_state(|state| state.block.get()).flatten() {
        block.borrowed.give_back(cell);
    }
}

/// Returns `true` if a cell from [`cell`] is a borrowed one.
#[inline]
pub(crate) fn is_borrowed(cell: &StatCell) -> bool {
    with_state(|state| state.block.get())
        .flatten()
        .is_some_and(|block| block.borrowed.has(cell))
}

fn create(block: &Block, id: u32) -> Option<&'static StatCell> {
    let name = name::by_id(id)?;
    let cell = match name.new_cell() {
        Ok(cell) if block.slots.set(id, cell) => cell,
        Ok(cell) => {
            name.retire(cell);
            return None;
        }
        Err(NoCellLeft::Limit) => block.borrowed.borrow(name)?,
        Err(NoCellLeft::NoMemory) => return None,
    };
    with_state(ThreadState::follow_innermost);
    links::mark_new_cell(id, cell);
    Some(cell)
}

/// Runs `f` on the thread's ring, which `f` creates if there is none. Returns `None` if the thread has ended, or if there
/// is no memory.
pub(crate) fn with_ring<T>(f: impl FnOnce(&mut Option<Producer<LogRecord>>) -> T) -> Option<T> {
    let block = with_state(ThreadState::block).flatten()?;
    // The caller has entered the profiler, so that no call inside `f` comes back here while the ring is borrowed.
    block
        .ring
        .try_borrow_mut()
        .ok()
        .map(|mut ring| f(&mut ring))
}

/// Runs `f` on the thread's ring if there is one, and it is not in use.
#[inline(always)]
pub(crate) fn with_made_ring<T>(f: impl FnOnce(&mut Producer<LogRecord>) -> T) -> Option<T> {
    let block = with_state(|state| state.block.get()).flatten()?;
    block.ring.try_borrow_mut().ok()?.as_mut().map(f)
}

/// Returns the decision that this thread keeps for a name given as text. `site` identifies the call site.
#[inline(always)]
pub(crate) fn cached_decision(site: usize, text: &str) -> Option<u64> {
    let block = with_state(|state| state.block.get()).flatten()?;
    block.text_decisions.get(site, text)
}

/// Keeps a decision for [`cached_decision`]. The caller has entered the profiler, as this may allocate.
pub(crate) fn cache_decision(site: usize, text: &'static str, decision: u64) {
    if let Some(block) = with_state(ThreadState::block).flatten() {
        block.text_decisions.set(site, text, decision);
    }
}

#[cfg(test)]
mod tests;
