//! The heap memory of one measured thread, recycled when the thread ends.

use std::alloc::{Layout, alloc};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use profiler_host::sync::Lock;
use profiler_host::sync::ring::Producer;

use super::borrowed::Borrowed;
use super::callers::{self, CallersCell};
use super::innermost::SERIALS;
use super::links::Links;
use super::ranges::{OpenRanges, Ranges};
use super::slots::Slots;
use super::text_decisions::TextDecisions;
use super::thread_times::ThreadTimes;
use crate::log_record::LogRecord;
use crate::name;
use crate::stats::{self, StatCell};

/// The serials of a block are those of a range, so that a scope which is closed on another thread than its own is told apart.
/// If there are more blocks than ranges, some share one: then a scope that moves between their threads may not be told apart.
/// A thread that uses up its range goes on with the next one. Half of all serials are above the last range, so that no thread
/// runs out of them.
const RANGES: u64 = 1 << 7;
const SERIALS_OF_RANGE: u64 = 1 << 40;
const _: () = assert!(RANGES * SERIALS_OF_RANGE <= SERIALS / 2 + 1);

/// The memory of a thread from its first measured call to its end.
pub(super) struct Block {
    pub(super) slots: Slots,
    pub(super) borrowed: Borrowed,
    /// The decisions for names that calls pass as text.
    pub(super) text_decisions: TextDecisions,
    /// The thread's ring to the collector, created for the first record.
    pub(super) ring: RefCell<Option<Producer<LogRecord>>>,
    pub(super) links: Links,
    /// Says which handle the thread is inside of, for other threads. Taken when the thread first enters one.
    pub(super) entered: Cell<Option<&'static StatCell>>,
    pub(super) callers: CallersCell,
    pub(super) thread_times: ThreadTimes,
    pub(super) ranges: Ranges,
    /// The last serial that a thread with this block has used, and the last one before its current thread.
    pub(super) last_serial: Cell<u64>,
    pub(super) serial_before: Cell<u64>,
    /// The next block of the free list, while this one is in it.
    next_free: Cell<Option<&'static Self>>,
}

/// The blocks that no thread uses, as a linked list through the blocks: recycling one takes no memory.
#[derive(Default)]
struct FreeList(Option<&'static Block>);

// SAFETY: no thread uses a block that is in the list, so the holder of the lock may send it to another thread. All that
// is in it is empty: its slots, its borrowed cells, its text decisions, its ring, its links, its thread times, its
// ranges and its callers.
unsafe impl Send for FreeList {}

static FREE: Lock<FreeList> = Lock::new(FreeList(None));
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Returns how many blocks were ever allocated: the largest number in use at the same time.
pub fn blocks_made() -> usize {
    MADE.load(Relaxed)
}

/// Returns an empty block: a recycled one, or a new one. Returns `None` if there is no memory.
///
/// Blocks are never freed. There are at most as many as threads that were measured at the same time.
pub(super) fn acquire() -> Option<&'static Block> {
    let free = {
        let mut list = FREE.lock();
        let first = list.0.take();
        list.0 = first.and_then(|block| block.next_free.take());
        first
    };
    free.or_else(Block::allocate)
}

/// Puts a block whose cells are retired into the free list. A block that is in use below this call is leaked instead.
pub(super) fn recycle(block: &'static Block) {
    // Before the lock is taken: records in the ring own loggers, whose destructors are user code.
    if block.clear() {
        let mut list = FREE.lock();
        block.next_free.set(list.0.take());
        list.0 = Some(block);
    }
}

impl Block {
    /// Allocates a block that is never freed. Returns `None` if there is no memory.
    fn allocate() -> Option<&'static Self> {
        // `Box` would abort the program if there is no memory.
        // SAFETY: the size is not zero.
        let memory = NonNull::new(unsafe { alloc(Layout::new::<Self>()) })?.cast::<Self>();
        let number = MADE.fetch_add(1, Relaxed) as u64;
        // SAFETY: the memory has the layout of a block, is used by nothing else, and is never freed.
        unsafe {
            memory.write(Self::new(number % RANGES * SERIALS_OF_RANGE));
            Some(memory.as_ref())
        }
    }

    /// Returns a block whose thread uses the serials after this one.
    fn new(last_serial: u64) -> Self {
        Self {
            slots: Slots::new(),
            borrowed: Borrowed::default(),
            text_decisions: TextDecisions::new(),
            ring: RefCell::new(None),
            links: RefCell::new(Vec::new()),
            entered: Cell::new(None),
            callers: RefCell::new(None),
            thread_times: RefCell::new(Vec::new()),
            ranges: Ranges::default(),
            last_serial: Cell::new(last_serial),
            serial_before: Cell::new(last_serial),
            next_free: Cell::new(None),
        }
    }

    /// Returns the thread's cell for a name, its own or a borrowed one.
    pub(super) fn cell(&self, id: u32) -> Option<&'static StatCell> {
        self.slots.cell(id).or_else(|| self.borrowed.cell(id))
    }

    /// Returns all cells of the thread, with those that it has borrowed.
    pub(super) fn cells(&'static self) -> impl Iterator<Item = &'static StatCell> {
        let own = self.slots.cells().map(|(_, cell)| cell);
        own.chain(self.borrowed.cells())
    }

    /// Drops the ring, the text decisions, the links, the thread times, the ranges and the callers. Returns `false`
    /// and keeps them if one of them is borrowed.
    fn clear(&self) -> bool {
        let (Ok(mut ring), Ok(mut links), Ok(mut times), Ok(mut ranges), Ok(mut callers)) = (
            self.ring.try_borrow_mut(),
            self.links.try_borrow_mut(),
            self.thread_times.try_borrow_mut(),
            self.ranges.try_borrow_mut(),
            self.callers.try_borrow_mut(),
        ) else {
            return false;
        };
        drop(ring.take());
        self.text_decisions.clear();
        *links = Vec::new();
        *times = Vec::new();
        *ranges = OpenRanges::default();
        drop(callers.take());
        true
    }

    /// Moves the counts of all cells to their names, and returns the cells to the pool.
    pub(super) fn retire_cells(&self) {
        let cells = self.slots.cells();
        for (id, cell) in cells {
            if let Some(name) = name::by_id(id) {
                name.retire(cell);
            }
        }
        self.slots.clear();
        self.borrowed.retire();
        if let Some(cell) = self.entered.take() {
            cell.show_left();
            stats::put_back(cell);
        }
        callers::retire(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_cleared_unless_it_is_in_use() {
        let block = acquire().unwrap();
        block.text_decisions.set(1, "text", 1);

        let borrowed = block.ring.borrow_mut();
        assert!(!block.clear());
        drop(borrowed);
        let borrowed = block.callers.borrow_mut();
        assert!(!block.clear());
        drop(borrowed);
        assert_eq!(block.text_decisions.get(1, "text"), Some(1));

        assert!(block.clear());
        assert_eq!(block.text_decisions.get(1, "text"), None);
        recycle(block);
    }
}
