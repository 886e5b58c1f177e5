//! Cells that outlive their threads, to be used again.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::StatCell;
use crate::process::Lock;

/// Cells no thread holds now. Never more were made than were in use at once, and those that stay with their names (see
/// `Name::retire`).
static SPARE: Lock<Vec<&'static StatCell>> = Lock::new(Vec::new());
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A cell that counts nothing yet; made only when all others are in use. None where there is no memory for it.
pub(crate) fn take() -> Option<&'static StatCell> {
    let spare = SPARE.lock().pop();
    spare.or_else(make)
}

/// Makes a cell. `Box` has no way to do that without ending the program where there is no memory.
fn make() -> Option<&'static StatCell> {
    let mut cell = Vec::new();
    cell.try_reserve_exact(1).ok()?;
    cell.push(StatCell::new());
    MADE.fetch_add(1, Relaxed);
    cell.leak().first()
}

/// Takes back a cell that has been drained and that nobody writes any more.
///
/// Where there is no memory to remember it, it is lost: 3 KiB that counted nothing any more.
pub(crate) fn put_back(cell: &'static StatCell) {
    let mut spare = SPARE.lock();
    if spare.try_reserve(1).is_ok() {
        spare.push(cell);
    }
}

/// How many cells were ever made: the most that were in use at once.
pub fn cells_made() -> usize {
    MADE.load(Relaxed)
}
