//! The heap memory of one measured thread, recycled when the thread ends.

use std::alloc::{Layout, alloc_zeroed};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::callers::{self, CallersCell};
use super::links::Links;
use super::ranges::{OpenRanges, Ranges};
use super::thread_times::ThreadTimes;
use crate::log::LogRecord;
use crate::name::{self, MAX_NAMES};
use crate::stats::StatCell;
use crate::sync::Lock;
use crate::sync::ring::Producer;

/// The number of names whose cells are found by one index: those with the lowest ids.
pub(crate) const DIRECT: usize = 1024;
/// The other names' cells are found by two indices, in pages of this size.
const PAGE: usize = 256;
const PAGES: usize = (MAX_NAMES - DIRECT) / PAGE;
const _: () = assert!(DIRECT + PAGE * PAGES == MAX_NAMES);

pub(super) type Slot = Cell<Option<&'static StatCell>>;
type Page = [Slot; PAGE];

/// The cells of the names with the lowest ids, by id.
pub(super) struct DirectCells([Slot; DIRECT]);

impl DirectCells {
    /// Returns a table without cells, for threads without a block.
    pub(super) const fn empty() -> &'static Self {
        struct Shared(DirectCells);
        // SAFETY: nothing writes to the table. The field of `DirectCells` is private to this file, where slots are
        // written through a `Block` only, and this table is in none.
        unsafe impl Sync for Shared {}
        static EMPTY: Shared = Shared(DirectCells([const { Cell::new(None) }; DIRECT]));
        &EMPTY.0
    }

    #[inline(always)]
    pub(super) fn get(&self, id: u32) -> Option<&'static StatCell> {
        self.0.get(id as usize)?.get()
    }
}

/// The memory of a thread from its first measured call to its end. About 10 KiB.
#[repr(C)]
pub(super) struct Block {
    pub(super) direct_cells: DirectCells,
    /// The cells of the other names.
    pages: [Cell<Option<&'static Page>>; PAGES],
    /// The decisions for names that calls pass as text: by the address that identifies the call site, then by text.
    pub(super) text_decisions: RefCell<BTreeMap<usize, BTreeMap<Box<str>, u64>>>,
    /// The thread's ring to the collector, created for the first record.
    pub(super) ring: RefCell<Option<Producer<LogRecord>>>,
    pub(super) links: Links,
    pub(super) callers: CallersCell,
    /// One more than the highest id that has a direct cell.
    direct_end: Cell<usize>,
    pub(super) thread_times: ThreadTimes,
    pub(super) ranges: Ranges,
    /// The next block of the free list, while this one is in it.
    next_free: Cell<Option<&'static Self>>,
}

/// The blocks that no thread uses, as a linked list through the blocks: recycling one takes no memory.
#[derive(Default)]
struct FreeList(Option<&'static Block>);

// SAFETY: no thread uses a block that is in the list, so the holder of the lock may send it to another thread. All that
// is in it is empty: its slots, its text decisions, its ring, its links, its thread times, its
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

/// Allocates zeroed memory that is never freed. The value is not built on the stack, which may be small.
fn zeroed<T>() -> Option<NonNull<T>> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { alloc_zeroed(Layout::new::<T>()) }).map(NonNull::cast)
}

impl Block {
    fn allocate() -> Option<&'static Self> {
        let memory = zeroed::<Self>()?;
        MADE.fetch_add(1, Relaxed);
        let block = memory.as_ptr();
        // SAFETY: the memory has the layout of a block, is used by nothing else, and is never freed. Zeros are valid for
        // `direct_cells`, `pages` and `next_free`, which are `Cell`s of optional references: null is `None`; and for
        // `direct_end`, an integer. The other fields are written before there is a reference to the block.
        unsafe {
            (&raw mut (*block).text_decisions).write(RefCell::new(BTreeMap::new()));
            (&raw mut (*block).ring).write(RefCell::new(None));
            (&raw mut (*block).links).write(RefCell::new(Vec::new()));
            (&raw mut (*block).thread_times).write(RefCell::new(Vec::new()));
            (&raw mut (*block).ranges).write(Ranges::default());
            (&raw mut (*block).callers).write(RefCell::new(None));
            Some(memory.as_ref())
        }
    }

    /// Returns the slot for the cell of a name, or `None` if there is no memory for its page.
    pub(super) fn slot(&self, id: u32) -> Option<&Slot> {
        let Some(paged) = (id as usize).checked_sub(DIRECT) else {
            return self.direct_cells.0.get(id as usize);
        };
        let page = self.pages.get(paged / PAGE)?;
        let allocated = page.get().or_else(|| {
            // SAFETY: the page is never freed, and zeros are valid for slots, as in `allocate`.
            let new = zeroed::<Page>().map(|memory| unsafe { memory.as_ref() });
            page.set(new);
            new
        });
        allocated?.get(paged % PAGE)
    }

    /// Returns all slots with the ids they are for, except those of pages that were never allocated.
    fn slots(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.slots_up_to(DIRECT)
    }

    /// Returns the first direct slots, and those of all pages.
    fn slots_up_to(&self, direct_end: usize) -> impl Iterator<Item = (usize, &Slot)> {
        let pages = self.pages.iter().enumerate();
        let later = pages.filter_map(|(index, page)| Some((DIRECT + index * PAGE, page.get()?)));
        let later = later.flat_map(|(first, page)| (first..).zip(page));
        let direct = self.direct_cells.0.iter().take(direct_end).enumerate();
        direct.chain(later)
    }

    /// Returns the thread's cell for a name, if there is one.
    pub(super) fn cell(&self, id: u32) -> Option<&'static StatCell> {
        let Some(paged) = (id as usize).checked_sub(DIRECT) else {
            return self.direct_cells.get(id);
        };
        let page = self.pages.get(paged / PAGE)?.get()?;
        page.get(paged % PAGE)?.get()
    }

    /// Puts the cell for a name into its slot.
    pub(super) fn set_cell(&self, id: u32, slot: &Slot, cell: &'static StatCell) {
        slot.set(Some(cell));
        let end = (id as usize).saturating_add(1).min(DIRECT);
        self.direct_end.set(self.direct_end.get().max(end));
    }

    /// Returns all cells of the thread.
    pub(super) fn cells(&self) -> impl Iterator<Item = &'static StatCell> {
        let slots = self.slots_up_to(self.direct_end.get());
        slots.filter_map(|(_, slot)| slot.get())
    }

    /// Drops the ring, the text decisions, the links, the thread times, the ranges and the callers. Returns `false`
    /// and keeps them if one of them is borrowed.
    fn clear(&self) -> bool {
        let (
            Ok(mut ring),
            Ok(mut texts),
            Ok(mut links),
            Ok(mut times),
            Ok(mut ranges),
            Ok(mut callers),
        ) = (
            self.ring.try_borrow_mut(),
            self.text_decisions.try_borrow_mut(),
            self.links.try_borrow_mut(),
            self.thread_times.try_borrow_mut(),
            self.ranges.try_borrow_mut(),
            self.callers.try_borrow_mut(),
        )
        else {
            return false;
        };
        drop(ring.take());
        texts.clear();
        *links = Vec::new();
        *times = Vec::new();
        *ranges = OpenRanges::default();
        drop(callers.take());
        true
    }

    /// Moves the counts of all cells to their names, and returns the cells to the pool.
    pub(super) fn retire_cells(&self) {
        for (id, slot) in self.slots() {
            let Some(cell) = slot.take() else { continue };
            #[allow(clippy::cast_possible_truncation, reason = "below MAX_NAMES")]
            if let Some(name) = name::by_id(id as u32) {
                name.retire(cell);
            }
        }
        self.direct_end.set(0);
        callers::retire(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static CELL: StatCell = StatCell::new();

    #[test]
    fn each_id_has_a_slot_of_its_own() {
        let block = acquire().unwrap();
        let last = u32::try_from(MAX_NAMES - 1).unwrap();
        let direct = u32::try_from(DIRECT).unwrap();
        for id in [0, direct - 1, direct, direct + 256, last] {
            let slot = block.slot(id).unwrap();
            assert!(slot.get().is_none(), "id {id}");
            slot.set(Some(&CELL));
        }
        let ids: Vec<_> = block
            .slots()
            .filter(|(_, slot)| slot.take().is_some())
            .map(|(id, _)| id)
            .collect();
        assert_eq!(ids, [0, DIRECT - 1, DIRECT, DIRECT + 256, MAX_NAMES - 1]);
        assert!(block.slot(last + 1).is_none());
        recycle(block);
    }

    #[test]
    fn the_direct_cells_are_those_of_the_lowest_ids() {
        let block = acquire().unwrap();
        block.slot(5).unwrap().set(Some(&CELL));
        assert!(block.direct_cells.get(5).is_some());
        assert!(block.direct_cells.get(6).is_none());
        assert!(block.direct_cells.get(u32::MAX).is_none());
        assert!(DirectCells::empty().get(5).is_none());
        block.slot(5).unwrap().take();
        recycle(block);
    }

    #[test]
    fn a_block_is_cleared_unless_it_is_in_use() {
        let block = acquire().unwrap();
        let decisions = BTreeMap::from([(Box::from("text"), 1)]);
        block.text_decisions.borrow_mut().insert(1, decisions);

        let borrowed = block.ring.borrow_mut();
        assert!(!block.clear());
        drop(borrowed);
        let borrowed = block.callers.borrow_mut();
        assert!(!block.clear());
        drop(borrowed);
        assert!(!block.text_decisions.borrow().is_empty());

        assert!(block.clear());
        assert!(block.text_decisions.borrow().is_empty());
        recycle(block);
    }
}
