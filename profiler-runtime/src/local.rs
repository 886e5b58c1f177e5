//! What each thread keeps for itself: its open scopes and its cells.
//!
//! In two parts. [`Hot`] is what a measured call touches; it needs no destructor, so that nothing has
//! to be checked before it is touched. [`Kept`] is the rest, and its destructor empties both when the
//! thread ends.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;

use rtrb::Producer;

use crate::name::{self, MAX_NAMES};
use crate::record::Record;
use crate::stats::StatCell;

/// Names whose cells are found by one index; the program's first ones.
const DIRECT: usize = 1024;
/// The others are found by two.
const PAGE: usize = 256;
type Page = [Cell<Option<&'static StatCell>>; PAGE];
const PAGES: usize = (MAX_NAMES - DIRECT) / PAGE;
const _: () = assert!(DIRECT + PAGE * PAGES == MAX_NAMES);

/// What [`Hot::top`] is on a thread that has ended: the number of no scope.
pub(crate) const ENDED: u64 = u64::MAX;

/// What a measured call reads and writes.
///
/// There is no stack of open scopes: each guard keeps what its opening replaced, and puts it back.
// Apart from each other: side by side they would be read at once, and a processor waits to read at once
// what was written one after the other.
#[repr(C)]
pub(crate) struct Hot {
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
    cells: [Cell<Option<&'static StatCell>>; DIRECT],
}

struct Kept {
    pages: [OnceCell<Box<Page>>; PAGES],
    /// Decisions on names that calls bring along, for each place that keeps names apart.
    texts: RefCell<BTreeMap<usize, BTreeMap<Box<str>, u64>>>,
    /// The way to the collector, made for the first record.
    ring: RefCell<Option<Producer<Record>>>,
}

thread_local! {
    static HOT: Hot = const {
        Hot {
            serial: Cell::new(0),
            _apart: 0,
            children: Cell::new(0),
            _apart_too: 0,
            top: Cell::new(0),
            floor: Cell::new(0),
            cells: [const { Cell::new(None) }; DIRECT],
        }
    };
    static KEPT: Kept = const {
        Kept {
            pages: [const { OnceCell::new() }; PAGES],
            texts: RefCell::new(BTreeMap::new()),
            ring: RefCell::new(None),
        }
    };
    /// Whether this thread is inside the profiler's own bookkeeping.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` on what measured calls touch. Nothing there is ever destroyed, so that this works to the
/// thread's very end: always `Some`, which the compiler knows too.
#[inline(always)]
pub(crate) fn hot<T>(f: impl FnOnce(&Hot) -> T) -> Option<T> {
    HOT.try_with(f).ok()
}

impl Hot {
    /// The thread's cell for a name, if it is one of the first and has one already.
    #[inline(always)]
    pub(crate) fn cell(&self, id: u32) -> Option<&'static StatCell> {
        self.cells.get(id as usize)?.get()
    }
}

/// The number of the innermost open scope; zero where none is open.
pub(crate) fn innermost() -> u64 {
    hot(|hot| hot.top.get())
        .filter(|top| *top != ENDED)
        .unwrap_or(0)
}

/// Takes all scopes younger than the one with this number for forgotten: calls of their names are not
/// made from within them any more. One that is closed later after all is told by its cell.
#[cold]
pub(crate) fn forget_above(serial: u64) {
    let forget = |cells: &[Cell<Option<&'static StatCell>>]| {
        cells
            .iter()
            .filter_map(Cell::get)
            .for_each(|cell| cell.forget_above(serial));
    };
    hot(|hot| forget(&hot.cells));
    let _ = KEPT.try_with(|kept| {
        kept.pages
            .iter()
            .filter_map(OnceCell::get)
            .for_each(|page| forget(&**page));
    });
}

/// The names of the scopes that are open up to the one with this number, outermost first: of each name the outermost
/// one.
#[cold]
pub(crate) fn open_names(up_to: u64) -> std::sync::Arc<[u32]> {
    let mut open: Vec<(u64, u32)> = Vec::new();
    let mut look = |cells: &[Cell<Option<&'static StatCell>>]| {
        let cells = cells.iter().filter_map(Cell::get);
        #[allow(clippy::cast_possible_truncation, reason = "the number of a name")]
        let found = cells.map(|cell| (cell.outermost(), cell.id.get() as u32));
        open.extend(found.filter(|(serial, _)| (1..=up_to).contains(serial)));
    };
    if up_to > 0 {
        hot(|hot| look(&hot.cells));
        let _ = KEPT.try_with(|kept| {
            let pages = kept.pages.iter().filter_map(OnceCell::get);
            pages.for_each(|page| look(&**page));
        });
    }
    open.sort_unstable();
    open.into_iter().map(|(_, name)| name).collect()
}

/// Why a thread has no cell for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCell {
    /// The thread is inside the profiler: what is called there is not measured.
    Busy,
    /// The thread is ending and keeps nothing any more.
    Ended,
}

/// The calling thread's cell for a name, made on the first call.
pub(crate) fn cell(id: u32) -> Result<&'static StatCell, NoCell> {
    if let Some(cell) = hot(|hot| hot.cell(id)).flatten() {
        return Ok(cell);
    }
    let busy = Busy::claim().ok_or(NoCell::Busy)?;
    let made = KEPT.try_with(|kept| with_slot(kept, id, |slot| known_or_made(slot, id)));
    drop(busy);
    made.map_err(|_| NoCell::Ended)?
        .flatten()
        .ok_or(NoCell::Ended)
}

fn with_slot<T>(
    kept: &Kept,
    id: u32,
    f: impl FnOnce(&Cell<Option<&'static StatCell>>) -> T,
) -> Option<T> {
    let Some(beyond) = (id as usize).checked_sub(DIRECT) else {
        return hot(|hot| hot.cells.get(id as usize).map(f)).flatten();
    };
    let page = kept.pages.get(beyond / PAGE)?;
    let page = page.get_or_init(|| Box::new([const { Cell::new(None) }; PAGE]));
    page.get(beyond % PAGE).map(f)
}

fn known_or_made(slot: &Cell<Option<&'static StatCell>>, id: u32) -> Option<&'static StatCell> {
    slot.get().or_else(|| {
        let cell = name::by_id(id)?.new_cell();
        slot.set(Some(cell));
        Some(cell)
    })
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _busy = Busy::claim();
        hot(|hot| {
            retire_all(&hot.cells, 0);
            for (index, page) in self.pages.iter().enumerate() {
                if let Some(page) = page.get() {
                    retire_all(&**page, DIRECT + index * PAGE);
                }
            }
            // A guard that is still held, by another thread-local say, must not touch its cell again.
            hot.top.set(ENDED);
        });
    }
}

fn retire_all(cells: &[Cell<Option<&'static StatCell>>], first: usize) {
    for (index, cell) in cells.iter().enumerate() {
        #[allow(clippy::cast_possible_truncation, reason = "below MAX_NAMES")]
        let id = (first + index) as u32;
        if let (Some(cell), Some(name)) = (cell.take(), name::by_id(id)) {
            name.retire(cell);
        }
    }
}

/// Runs `f` on the thread's end of its ring; `None` where the thread is ending.
pub(crate) fn with_ring<T>(f: impl FnOnce(&mut Option<Producer<Record>>) -> T) -> Option<T> {
    // Nothing that is called with the ring borrowed comes back here: it is claimed to be busy.
    KEPT.try_with(|kept| kept.ring.try_borrow_mut().ok().map(|mut ring| f(&mut ring)))
        .ok()?
}

/// What the thread has decided for a name it was given as text.
pub(crate) fn known_text(place: usize, text: &str) -> Option<u64> {
    KEPT.try_with(|kept| {
        kept.texts
            .try_borrow()
            .ok()?
            .get(&place)?
            .get(text)
            .copied()
    })
    .ok()?
}

/// Keeps a decision for [`known_text`].
pub(crate) fn remember_text(place: usize, text: &str, decided: u64) {
    let _ = KEPT.try_with(|kept| {
        let Ok(mut texts) = kept.texts.try_borrow_mut() else {
            return;
        };
        let texts = texts.entry(place).or_default();
        match texts.get_mut(text) {
            Some(known) => *known = decided,
            None => drop(texts.insert(text.into(), decided)),
        }
    });
}

/// Marks the thread as being inside the profiler, where it takes locks and allocates.
///
/// A global allocator or a `tracing` subscriber that is measured itself would come back here; it is the
/// profiler it would measure then, and it would wait for a lock that its own thread holds. Such calls
/// go unmeasured, unless the fast way, which takes no lock, does for them.
pub(crate) struct Busy(());

impl Busy {
    /// None where the thread is marked already.
    pub(crate) fn claim() -> Option<Self> {
        // Made only where it is claimed: dropping it takes the mark away.
        if BUSY.replace(true) {
            None
        } else {
            Some(Self(()))
        }
    }

    /// Whether the thread is marked.
    pub(crate) fn is_claimed() -> bool {
        BUSY.get()
    }

    /// Marks a thread of the profiler's own for as long as it lives.
    pub(crate) fn for_ever() {
        BUSY.set(true);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.set(false);
    }
}
