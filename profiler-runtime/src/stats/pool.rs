//! Cells of threads that have ended, kept for other threads.

use std::alloc::{Layout, alloc_zeroed};
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::{iter, ptr};

use super::{StatCell, chunk};
use crate::sync::Lock;

/// Cells that no thread holds. Cells are never freed: there are as many as were in use at once, plus those that stay
/// with their names (see `Name::retire`).
static FREE: Lock<Vec<&'static StatCell>> = Lock::new(Vec::new());
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Returns a cell without counts: a free one, or a new one. Returns `None` if there is no memory for it.
pub(crate) fn take() -> Option<&'static StatCell> {
    chunk::fill();
    let free = FREE.lock().pop();
    free.or_else(allocate)
}

/// The cell that was allocated last: the head of a list that only grows.
///
/// A child that was forked while another thread changed the list of a name's cells finds the cells here. That is why
/// the list is lock-free: a push publishes a complete cell with one release exchange, and a reader's acquire load sees
/// it and, through their releases, all cells before it. Cells are never removed, so the exchange cannot mistake a
/// reused cell for the one that it loaded (no ABA problem).
static NEWEST: AtomicPtr<StatCell> = AtomicPtr::new(ptr::null_mut());

/// Allocates a cell. `Box` would abort the program if there is no memory, and would construct the cell on the stack,
/// which may be small.
fn allocate() -> Option<&'static StatCell> {
    // SAFETY: the size is not zero.
    let memory = ptr::NonNull::new(unsafe { alloc_zeroed(Layout::new::<StatCell>()) })?;
    // SAFETY: the memory has the layout of a cell, is used by nothing else, and is never freed. Zeros are valid for its
    // fields, and are what `StatCell::new` returns but for the newest time.
    let cell: &'static StatCell = unsafe { memory.cast().as_ref() };
    cell.initialize_zeroed();
    MADE.fetch_add(1, Relaxed);
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

/// Returns all cells that were ever allocated. The `id` of a free one is that of no name.
pub(crate) fn all_cells() -> impl Iterator<Item = &'static StatCell> {
    // SAFETY: the pointer is null or that of a cell, which is complete, since it was published with a release, and is never
    // freed.
    let cell = |pointer: &AtomicPtr<StatCell>| unsafe { pointer.load(Acquire).as_ref() };
    iter::successors(cell(&NEWEST), move |newer| cell(&newer.previous))
}

/// The [`StatCell::id`] of a free cell.
const NO_NAME: u64 = u64::MAX;

/// At most nine cache lines, on all targets.
const _: () = assert!(size_of::<StatCell>() <= 576);

/// Takes back a cell that was drained and that no thread writes any more.
///
/// If there is no memory to remember it, the cell is leaked, without counts.
pub(crate) fn put_back(cell: &'static StatCell) {
    cell.id.set(NO_NAME);
    let mut free = FREE.lock();
    if free.try_reserve(1).is_ok() {
        free.push(cell);
    }
}

/// Returns how many cells were ever allocated: the most that were in use at once.
pub fn cells_made() -> usize {
    MADE.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_cell_is_as_one_made_by_new() {
        let cell = allocate().expect("there is memory");
        let (mut allocated, mut new) = (super::super::Totals::new(), super::super::Totals::new());
        cell.read_into(&mut allocated);
        StatCell::new().read_into(&mut new);
        assert_eq!(format!("{allocated:?}"), format!("{new:?}"));
        assert_eq!((cell.id.get(), cell.every.get()), (0, 0));
    }

    #[test]
    fn every_cell_is_found_and_a_free_one_has_no_name() {
        let cell = take().expect("there is memory");
        cell.id.set(7);
        assert!(all_cells().any(|known| ptr::eq(known, cell)));
        // Another test may take it from here on.
        cell.id.set(NO_NAME - 1);
        put_back(cell);
        assert_ne!(cell.id.get(), NO_NAME - 1);
        assert!(all_cells().count() <= cells_made());
    }

    #[test]
    fn threads_that_allocate_at_once_lose_no_cell() {
        let each = if cfg!(miri) { 2 } else { 50 };
        let allocated: Vec<usize> = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| {
                let allocate = || ptr::from_ref(allocate().expect("there is memory")).addr();
                scope.spawn(move || (0..each).map(|_| allocate()).collect::<Vec<_>>())
            });
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("it does not panic"))
                .collect()
        });
        let known: std::collections::HashSet<usize> =
            all_cells().map(|cell| ptr::from_ref(cell).addr()).collect();
        assert!(allocated.iter().all(|cell| known.contains(cell)));
    }
}
