//! The cells that no thread holds: those of threads that have ended, and new ones.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::{iter, ptr};

use profiler_host::sync::Lock;

use super::chunk::Chunk;
use super::window::Window;
use super::{StatCell, memory, stock};

/// The cells that were allocated and that no thread holds. Cells are never freed: there are as many as were in use at
/// once, the rest of a batch, those that threads keep for the next name that they borrow a cell for (`local::borrowed`), and
/// those that stay with their names (see `Name::retire`).
struct CellPool {
    /// They were in use before.
    free: Vec<&'static StatCell>,
    /// The rest of the last batch, zeroed.
    new: &'static [StatCell],
}

impl CellPool {
    const fn new() -> Self {
        Self {
            free: Vec::new(),
            new: &[],
        }
    }

    fn next_new(&mut self) -> Option<&'static StatCell> {
        let (cell, rest) = self.new.split_first()?;
        self.new = rest;
        Some(cell)
    }
}

static POOL: Lock<CellPool> = Lock::with(CellPool::new(), CellPool::new);
static MADE: AtomicUsize = AtomicUsize::new(0);

/// The cells that are allocated at once: 10 KiB. One by one, the alignment would take a tenth more.
const BATCH: usize = 16;

/// Why there is no cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCellLeft {
    /// Cells take as much memory as they may.
    Limit,
    /// There is no memory.
    NoMemory,
}

/// Returns a cell without counts: a free one, or a new one if cells may take more memory.
pub(crate) fn take() -> Result<&'static StatCell, NoCellLeft> {
    stock::fill::<Chunk>();
    stock::fill::<Window>();
    if let Some(free) = POOL.lock().free.pop() {
        return Ok(free);
    }
    if !memory::has_room(size_of::<StatCell>()) {
        return Err(NoCellLeft::Limit);
    }
    make().ok_or(NoCellLeft::NoMemory)
}

/// Returns a cell without counts, also beyond the limit of their memory. Returns `None` if there is no memory for it.
pub(crate) fn take_beyond_limit() -> Option<&'static StatCell> {
    let free = POOL.lock().free.pop();
    free.or_else(make)
}

/// The new cell that was handed out last: the head of a list that only grows.
///
/// A child that was forked while another thread changed the list of a name's cells finds the cells here. That is why
/// the list is lock-free: a push publishes a complete cell with one release exchange, and a reader's acquire load sees
/// it and, through their releases, all cells before it. Cells are never removed, so the exchange cannot mistake a
/// reused cell for the one that it loaded (no ABA problem).
static NEWEST: AtomicPtr<StatCell> = AtomicPtr::new(ptr::null_mut());

/// Returns a new cell, and adds it to the list of all.
fn make() -> Option<&'static StatCell> {
    let cell = next_new(&POOL, Batch::allocate)?;
    cell.initialize_zeroed();
    MADE.fetch_add(1, Relaxed);
    memory::add(size_of::<StatCell>());
    let mut newest = NEWEST.load(Acquire);
    loop {
        cell.previous.store(newest, Relaxed);
        let pushed = ptr::from_ref(cell).cast_mut();
        match NEWEST.compare_exchange_weak(newest, pushed, Release, Acquire) {
            Ok(_) => return Some(cell),
            Err(newer) => newest = newer,
        }
    }
}

/// Returns a zeroed cell of the last batch, or of one that `allocate` returns.
fn next_new(
    pool: &Lock<CellPool>,
    allocate: impl FnOnce() -> Option<Batch>,
) -> Option<&'static StatCell> {
    if let Some(cell) = pool.lock().next_new() {
        return Some(cell);
    }
    // Without the lock, which a measured allocator could need.
    let batch = allocate()?;
    let mut pool = pool.lock();
    if let Some(cell) = pool.next_new() {
        // Another thread was faster. Two batches would not fit into the pool.
        drop(pool);
        drop(batch);
        return Some(cell);
    }
    let (cell, rest) = batch.keep().split_first()?;
    pool.new = rest;
    Some(cell)
}

/// Zeroed cells that nothing else knows yet. Dropping it frees them.
struct Batch(NonNull<StatCell>);

impl Batch {
    /// `None` if the size is not valid, which it is.
    fn layout() -> Option<Layout> {
        Layout::array::<StatCell>(BATCH).ok()
    }

    /// Allocates a batch. `Box` would abort the program if there is no memory, and would construct the cells on the stack,
    /// which may be small.
    fn allocate() -> Option<Self> {
        // SAFETY: the size is not zero.
        let memory = NonNull::new(unsafe { alloc_zeroed(Self::layout()?) })?;
        Some(Self(memory.cast()))
    }

    /// Returns the cells, which are never freed from then on.
    fn keep(self) -> &'static [StatCell] {
        let cells = ManuallyDrop::new(self).0;
        // SAFETY: the memory has the layout of the cells, is used by nothing else, and is never freed. Zeros are valid for
        // their fields, and are what `StatCell::new` returns but for the newest time.
        unsafe { std::slice::from_raw_parts(cells.as_ptr(), BATCH) }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout() {
            // SAFETY: the memory was allocated with this layout, and nothing else knows it.
            unsafe { dealloc(self.0.as_ptr().cast(), layout) };
        }
    }
}

/// Returns all cells that were ever handed out, the newest first. A free one has no name.
pub(crate) fn all_cells() -> impl Iterator<Item = &'static StatCell> {
    // SAFETY: the pointer is null or that of a cell, which is complete, since it was published with a release, and is never
    // freed.
    let cell = |pointer: &AtomicPtr<StatCell>| unsafe { pointer.load(Acquire).as_ref() };
    iter::successors(cell(&NEWEST), move |newer| cell(&newer.previous))
}

/// At most ten cache lines, on all targets.
const _: () = assert!(size_of::<StatCell>() <= 640);

/// Takes back a cell that was drained and that no thread writes any more.
///
/// If there is no memory to remember it, the cell is leaked, without counts.
pub(crate) fn put_back(cell: &'static StatCell) {
    mark_free(cell);
    let mut pool = POOL.lock();
    if pool.free.try_reserve(1).is_ok() {
        pool.free.push(cell);
    }
}

/// Notes that a cell, which was drained, belongs to no name.
pub(crate) fn mark_free(cell: &StatCell) {
    cell.belong_to_none();
}

/// Returns how many cells were ever handed out. One that was taken back is handed out again before a new one.
pub fn cells_made() -> usize {
    MADE.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_new_cell_is_as_one_made_by_new() {
        let cell = make().expect("there is memory");
        let (mut allocated, mut new) = (super::super::Totals::new(), super::super::Totals::new());
        cell.read_into(&mut allocated);
        StatCell::new().read_into(&mut new);
        assert_eq!(format!("{allocated:?}"), format!("{new:?}"));
        assert_eq!((cell.name(), cell.thread(), cell.every.get()), (0, 0, 0));
    }

    #[test]
    fn every_cell_is_found_and_a_free_one_has_no_name() {
        let cell = take().expect("there is memory");
        cell.belong_to(7);
        assert!(all_cells().any(|known| ptr::eq(known, cell)));
        // Another test may take it from here on.
        cell.belong_to(u32::MAX - 1);
        put_back(cell);
        assert_ne!(cell.name(), u32::MAX - 1);
        assert!(all_cells().count() <= cells_made());
    }

    #[test]
    fn a_batch_is_freed_if_another_one_came_first() {
        static POOL: Lock<CellPool> = Lock::with(CellPool::new(), CellPool::new);
        let mut first = None;
        let second = next_new(&POOL, || {
            first = next_new(&POOL, Batch::allocate);
            Batch::allocate()
        });
        let (first, second) = (first.expect("a cell"), second.expect("a cell"));
        assert!(ptr::eq(ptr::from_ref(first).wrapping_add(1), second));
        assert_eq!(POOL.lock().new.len(), BATCH - 2);
    }

    #[test]
    fn threads_that_allocate_at_once_get_cells_of_their_own_and_lose_none() {
        static POOL: Lock<CellPool> = Lock::with(CellPool::new(), CellPool::new);
        let each = if cfg!(miri) { 2 } else { 50 };
        let allocated: Vec<usize> = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| {
                let cell = || next_new(&POOL, Batch::allocate).expect("there is memory");
                let next = move || ptr::from_ref(cell()).addr();
                scope.spawn(move || (0..each).map(|_| next()).collect::<Vec<_>>())
            });
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("it does not panic"))
                .collect()
        });
        let distinct: HashSet<usize> = allocated.iter().copied().collect();
        assert_eq!(distinct.len(), allocated.len());
        // No batch was left before all of its cells had been handed out.
        let left = POOL.lock().new.len();
        assert_eq!((allocated.len() + left) % BATCH, 0);
    }

    #[test]
    fn cells_that_threads_make_at_once_are_all_found() {
        let each = if cfg!(miri) { 2 } else { 50 };
        let made: Vec<usize> = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| {
                let make = || ptr::from_ref(make().expect("there is memory")).addr();
                scope.spawn(move || (0..each).map(|_| make()).collect::<Vec<_>>())
            });
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("it does not panic"))
                .collect()
        });
        let known: HashSet<usize> = all_cells().map(|cell| ptr::from_ref(cell).addr()).collect();
        assert!(made.iter().all(|cell| known.contains(cell)));
    }
}
