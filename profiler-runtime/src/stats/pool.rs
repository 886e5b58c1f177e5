//! Cells that outlive their threads, to be used again.

use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::{iter, ptr};

use super::StatCell;
use crate::sync::Lock;

/// Cells no thread holds now. Never more were made than were in use at once, and those that stay with their names (see
/// `Name::retire`).
static SPARE: Lock<Vec<&'static StatCell>> = Lock::new(Vec::new());
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A cell that counts nothing yet; made only when all others are in use. None where there is no memory for it.
pub(crate) fn take() -> Option<&'static StatCell> {
    let spare = SPARE.lock().pop();
    spare.or_else(make)
}

/// A cell, and the one that was made before it.
struct Made {
    cell: StatCell,
    before: Option<&'static Made>,
}

/// The cell that was made last: a list that only grows, for a forked child to find the cells by that were in a list
/// which another thread changed at the fork.
static NEWEST: AtomicPtr<Made> = AtomicPtr::new(ptr::null_mut());

/// Makes a cell. `Box` has no way to do that without ending the program where there is no memory.
fn make() -> Option<&'static StatCell> {
    // Not moved there from the stack, which may be small.
    // SAFETY: the size is not zero.
    let made = unsafe { std::alloc::alloc_zeroed(std::alloc::Layout::new::<Made>()) };
    // Zeros are valid for all that it is made of, and what it begins as: atomic integers, and an optional reference.
    let made = ptr::NonNull::new(made)?.cast::<Made>().as_ptr();
    MADE.fetch_add(1, Relaxed);
    let mut newest = NEWEST.load(Acquire);
    loop {
        // SAFETY: `made` was allocated above, and no other thread has it before the exchange succeeds. What the list holds
        // is complete, since it is stored with a release, and is never freed.
        unsafe { (*made).before = newest.as_ref() };
        match NEWEST.compare_exchange_weak(newest, made, Release, Acquire) {
            // SAFETY: it is never freed, and nobody changes it but through the atomics of the cell.
            Ok(_) => return Some(unsafe { &(*made).cell }),
            Err(newer) => newest = newer,
        }
    }
}

/// Returns all cells that were ever made; those that no thread holds have the number of no name.
pub(crate) fn all_cells() -> impl Iterator<Item = &'static StatCell> {
    // SAFETY: as in `make`.
    let newest = unsafe { NEWEST.load(Acquire).as_ref() };
    iter::successors(newest, |made| made.before).map(|made| &made.cell)
}

/// What [`StatCell::id`] is in a cell that is no name's.
const NOBODY: u64 = u64::MAX;

/// Takes back a cell that has been drained and that nobody writes any more.
///
/// Where there is no memory to remember it, it is lost: 3 KiB that counted nothing any more.
pub(crate) fn put_back(cell: &'static StatCell) {
    cell.id.set(NOBODY);
    let mut spare = SPARE.lock();
    if spare.try_reserve(1).is_ok() {
        spare.push(cell);
    }
}

/// How many cells were ever made: the most that were in use at once.
pub fn cells_made() -> usize {
    MADE.load(Relaxed)
}
