//! Cells that outlive their threads, to be used again.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::StatCell;
use crate::process::Lock;

/// Cells no thread holds now. Never more were made than were in use at once.
static SPARE: Lock<Vec<&'static StatCell>> = Lock::new(Vec::new());
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A cell that counts nothing yet; made only when all others are in use.
pub(crate) fn take() -> &'static StatCell {
    let spare = SPARE.lock().pop();
    spare.unwrap_or_else(|| {
        MADE.fetch_add(1, Relaxed);
        Box::leak(Box::new(StatCell::new()))
    })
}

/// Takes back a cell that has been drained and that nobody writes any more.
pub(crate) fn put_back(cell: &'static StatCell) {
    SPARE.lock().push(cell);
}

/// How many cells were ever made: the most that were in use at once.
pub fn cells_made() -> usize {
    MADE.load(Relaxed)
}
