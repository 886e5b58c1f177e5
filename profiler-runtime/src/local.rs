//! What each thread keeps for itself: its open scopes and its cells.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;

use rtrb::Producer;

use crate::name;
use crate::record::Record;
use crate::stats::StatCell;

/// Cells by a name's number, in two steps: a thread that meets few names holds few pages.
const PAGE: usize = 256;
type Page = [Cell<Option<&'static StatCell>>; PAGE];
const _: () = assert!(PAGE * PAGE == name::MAX_NAMES);

/// The state of one thread.
///
/// There is no stack of open scopes: each guard keeps what its opening replaced, and puts it back.
pub(crate) struct Local {
    /// The number of the scope that was opened last.
    pub(crate) serial: Cell<u64>,
    /// The number of the innermost open scope; zero where none is open.
    pub(crate) top: Cell<u64>,
    /// How many ticks the children of the innermost open scope took so far.
    pub(crate) children: Cell<i64>,
    pages: [OnceCell<Box<Page>>; PAGE],
    /// Decisions on names that calls bring along.
    texts: RefCell<BTreeMap<Box<str>, u64>>,
    /// The way to the collector, made for the first record.
    pub(crate) ring: RefCell<Option<Producer<Record>>>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            serial: Cell::new(0),
            top: Cell::new(0),
            children: Cell::new(0),
            pages: [const { OnceCell::new() }; PAGE],
            texts: RefCell::new(BTreeMap::new()),
            ring: RefCell::new(None),
        }
    };
    /// Whether this thread is inside the profiler's own bookkeeping.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` on the calling thread's state; `None` where the thread is ending and has none any more.
#[inline]
pub(crate) fn with<T>(f: impl FnOnce(&Local) -> T) -> Option<T> {
    LOCAL.try_with(f).ok()
}

impl Local {
    /// The thread's cell for a name; made on the first call.
    #[inline]
    pub(crate) fn cell(&self, id: u32) -> Option<&'static StatCell> {
        let page = self.pages.get(id as usize / PAGE)?.get();
        match page.and_then(|page| page[id as usize % PAGE].get()) {
            Some(cell) => Some(cell),
            None => self.make_cell(id),
        }
    }

    #[cold]
    fn make_cell(&self, id: u32) -> Option<&'static StatCell> {
        let _busy = Busy::claim()?;
        let page = self.pages.get(id as usize / PAGE)?;
        let page = page.get_or_init(|| Box::new([const { Cell::new(None) }; PAGE]));
        let cell = name::by_id(id)?.new_cell();
        page[id as usize % PAGE].set(Some(cell));
        Some(cell)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        for (high, page) in self.pages.iter().enumerate() {
            for (low, cell) in page.get().into_iter().flat_map(|page| page.iter().enumerate()) {
                #[allow(clippy::cast_possible_truncation, reason = "below MAX_NAMES")]
                let id = (high * PAGE + low) as u32;
                if let (Some(cell), Some(name)) = (cell.take(), name::by_id(id)) {
                    name.retire(cell);
                }
            }
        }
    }
}

/// What the thread has decided for a name it was given as text.
pub(crate) fn known_text(text: &str) -> Option<u64> {
    with(|local| local.texts.try_borrow().ok()?.get(text).copied()).flatten()
}

/// Keeps a decision for [`known_text`].
pub(crate) fn remember_text(text: &str, decided: u64) {
    with(|local| {
        let Ok(mut texts) = local.texts.try_borrow_mut() else { return };
        match texts.get_mut(text) {
            Some(known) => *known = decided,
            None => drop(texts.insert(text.into(), decided)),
        }
    });
}

/// Marks the thread as being inside the profiler, where it takes locks and allocates.
///
/// A global allocator that is measured itself would come back here; it is the profiler it would
/// measure then, and it would wait for a lock that its own thread holds. Such calls go unmeasured.
pub(crate) struct Busy(());

impl Busy {
    pub(crate) fn claim() -> Option<Self> {
        (!BUSY.replace(true)).then_some(Self(()))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.set(false);
    }
}
