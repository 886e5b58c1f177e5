//! What a thread keeps on the heap, and the blocks that no thread has now.

use std::alloc::{Layout, alloc_zeroed};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::log::LogRecord;
use crate::name::{self, MAX_NAMES};
use crate::stats::StatCell;
use crate::sync::Lock;
use crate::sync::ring::Producer;

/// Names whose cells are found by one index; the program's first ones.
const DIRECT: usize = 1024;
/// The others are found by two.
const PAGE: usize = 256;
const PAGES: usize = (MAX_NAMES - DIRECT) / PAGE;
const _: () = assert!(DIRECT + PAGE * PAGES == MAX_NAMES);

type Slot = Cell<Option<&'static StatCell>>;
type Page = [Slot; PAGE];

/// The cells of the first names, by the name's number.
pub(super) struct Cells([Slot; DIRECT]);

impl Cells {
    /// Returns the cells of a thread without a block: there are none.
    pub(super) const fn none() -> &'static Self {
        struct Nobodys(Cells);
        // SAFETY: nobody writes it. The field of `Cells` is private to this file, in which slots are written
        // through `Block` alone, and this one is in no block.
        unsafe impl Sync for Nobodys {}
        static NONE: Nobodys = Nobodys(Cells([const { Cell::new(None) }; DIRECT]));
        &NONE.0
    }

    #[inline(always)]
    pub(super) fn get(&self, id: u32) -> Option<&'static StatCell> {
        self.0.get(id as usize)?.get()
    }
}

/// What a thread keeps from its first measured call to its end. About 10 KiB.
#[repr(C)]
pub(super) struct Block {
    pub(super) cells: Cells,
    /// The cells of later names.
    pages: [Cell<Option<&'static Page>>; PAGES],
    /// Decisions on names that calls args along, for each place that keeps names apart.
    pub(super) texts: RefCell<BTreeMap<usize, BTreeMap<Box<str>, u64>>>,
    /// The way to the collector, made for the first record.
    pub(super) ring: RefCell<Option<Producer<LogRecord>>>,
    /// The next one of those that no thread has.
    next: Cell<Option<&'static Self>>,
}

/// Blocks that no thread has now, as a list through themselves: to give one back takes no memory.
#[derive(Default)]
struct Spare(Option<&'static Block>);

// SAFETY: a block in the list belongs to nobody else; whoever holds the lock may send it to another thread, as
// all that is in it is empty: its slots, its texts and its ring.
unsafe impl Send for Spare {}

static SPARE: Lock<Spare> = Lock::new(Spare(None));
static MADE: AtomicUsize = AtomicUsize::new(0);

/// How many blocks were ever made: the most that were in use at once.
pub fn blocks_made() -> usize {
    MADE.load(Relaxed)
}

/// Returns an empty block: one that a thread has left, or a new one; none where there is no memory for it.
///
/// Blocks are never freed. No more are made than there are threads at once that measure.
pub(super) fn take() -> Option<&'static Block> {
    let left = {
        let mut spare = SPARE.lock();
        let first = spare.0.take();
        spare.0 = first.and_then(|block| block.next.take());
        first
    };
    left.or_else(Block::make)
}

/// Leaves an emptied block to other threads.
pub(super) fn put_back(block: &'static Block) {
    // What loggers args along may be dropped here, which is foreign code: before the lock is taken.
    let (Ok(mut ring), Ok(mut texts)) = (block.ring.try_borrow_mut(), block.texts.try_borrow_mut())
    else {
        return;
    };
    drop(ring.take());
    texts.clear();
    drop((ring, texts));
    let mut spare = SPARE.lock();
    block.next.set(spare.0.take());
    spare.0 = Some(block);
}

/// Allocates zeroed memory that is never freed. It is not moved there from the stack, which may be small.
fn zeroed<T>() -> Option<NonNull<T>> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { alloc_zeroed(Layout::new::<T>()) }).map(NonNull::cast)
}

impl Block {
    fn make() -> Option<&'static Self> {
        let made = zeroed::<Self>()?;
        MADE.fetch_add(1, Relaxed);
        let block = made.as_ptr();
        // SAFETY: the memory is that of a block, nobody else has it, and it is never freed. Of `cells`, `pages`
        // and `next` zeros are valid: they are `Cell`s of optional references, and null is `None`. What is not
        // known to be valid as zeros is written before there is a reference.
        unsafe {
            (&raw mut (*block).texts).write(RefCell::new(BTreeMap::new()));
            (&raw mut (*block).ring).write(RefCell::new(None));
            Some(made.as_ref())
        }
    }

    /// Returns where the cell of a name is to be found; none where there is no memory for it.
    pub(super) fn slot(&self, id: u32) -> Option<&Slot> {
        let Some(beyond) = (id as usize).checked_sub(DIRECT) else {
            return self.cells.0.get(id as usize);
        };
        let page = self.pages.get(beyond / PAGE)?;
        let known = page.get().or_else(|| {
            // SAFETY: never freed, and of slots zeros are valid, as above.
            let made = zeroed::<Page>().map(|made| unsafe { made.as_ref() });
            page.set(made);
            made
        });
        known?.get(beyond % PAGE)
    }

    /// Returns the slots of all names that the block has a place for, in the order of their numbers but for pages that
    /// were never made, with the number of each.
    fn slots(&self) -> impl Iterator<Item = (usize, &Slot)> {
        let pages = self.pages.iter().enumerate();
        let later = pages.filter_map(|(index, page)| Some((DIRECT + index * PAGE, page.get()?)));
        let later = later.flat_map(|(first, page)| (first..).zip(page));
        self.cells.0.iter().enumerate().chain(later)
    }

    /// Returns all cells.
    pub(super) fn cells(&self) -> impl Iterator<Item = &'static StatCell> {
        self.slots().filter_map(|(_, slot)| slot.get())
    }

    /// Folds what the cells have counted into their names, and gives the cells back.
    pub(super) fn retire_cells(&self) {
        for (id, slot) in self.slots() {
            let Some(cell) = slot.take() else { continue };
            #[allow(clippy::cast_possible_truncation, reason = "below MAX_NAMES")]
            if let Some(name) = name::by_id(id as u32) {
                name.retire(cell);
            }
        }
    }
}
