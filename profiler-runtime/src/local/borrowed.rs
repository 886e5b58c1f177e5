//! Cells that a thread has borrowed.
//!
//! Once cells take as much memory as they may, a thread that calls a name for the first time gets no cell of its own. It
//! borrows one while a scope of the name is open on it, and uses it as any other: nesting, recursion, panics, logs and GPU
//! times are the same. When the last such scope has closed, the counts move to the name, where threads share them, and the
//! cell is ready for another name.
//!
//! A borrowed cell is not in the table of slots, so that each scope of its name takes the slow path. That counts the scopes
//! that refer to the cell: one may close out of order, when the cell says that none is open.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use profiler_host::sync::ReentrancyGuard;

use crate::name::{self, Name};
use crate::stats::{self, StatCell};

/// A cell that is borrowed for a name.
#[derive(Clone, Copy)]
struct Loan {
    id: u32,
    cell: &'static StatCell,
    /// The scopes and calls of the profiler that refer to it.
    users: usize,
}

/// The cells that one thread has borrowed.
#[derive(Default)]
struct Loans {
    /// One for each name with an open scope.
    current: Vec<Loan>,
    /// Cells without counts.
    spare: Vec<&'static StatCell>,
    /// `true` if the thread has borrowed one.
    has_borrowed: bool,
}

/// The cells that a thread has borrowed, as a part of its block.
#[derive(Default)]
pub(super) struct Borrowed {
    /// `true` if a cell is borrowed: all that most scopes on the slow path need to know.
    is_in_use: Cell<bool>,
    loans: RefCell<Loans>,
}

/// The threads that have borrowed cells.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Returns how many threads have borrowed cells.
pub(crate) fn borrowing_threads() -> usize {
    THREADS.load(Relaxed)
}

impl Borrowed {
    /// Returns the cell of a name, if one is borrowed for it.
    pub(super) fn cell(&self, id: u32) -> Option<&'static StatCell> {
        let loans = self.loans.try_borrow().ok()?;
        let loan = loans.current.iter().find(|loan| loan.id == id)?;
        Some(loan.cell)
    }

    /// Returns all cells that are borrowed.
    pub(super) fn cells(&'static self) -> impl Iterator<Item = &'static StatCell> {
        let at = |index: usize| Some(self.loans.try_borrow().ok()?.current.get(index)?.cell);
        (0..).map_while(at)
    }

    /// Returns `true` if this cell is borrowed.
    pub(super) fn has(&self, cell: &StatCell) -> bool {
        let has = |loans: &Loans| loans.of(cell).is_some();
        self.is_in_use.get() && self.loans.try_borrow().is_ok_and(|loans| has(&loans))
    }

    /// Uses the cell that is borrowed for a name once more.
    pub(super) fn again(&self, id: u32) -> Option<&'static StatCell> {
        let mut loans = self.loans.try_borrow_mut().ok()?;
        let loan = loans.current.iter_mut().find(|loan| loan.id == id)?;
        loan.users += 1;
        Some(loan.cell)
    }

    /// Borrows a cell for a name. Returns `None` if there is no memory.
    pub(super) fn borrow(&self, name: &Name) -> Option<&'static StatCell> {
        let mut loans = self.loans.try_borrow_mut().ok()?;
        loans.current.try_reserve(1).ok()?;
        let spare = loans.spare.pop();
        let cell = name.lend(spare)?;
        if !loans.has_borrowed {
            loans.has_borrowed = true;
            THREADS.fetch_add(1, Relaxed);
        }
        loans.current.push(Loan {
            id: name.id,
            cell,
            users: 1,
        });
        self.is_in_use.set(true);
        Some(cell)
    }

    /// Ends one use of a cell, if it is borrowed.
    #[inline]
    pub(super) fn give_back(&self, cell: &StatCell) {
        if self.is_in_use.get() {
            self.end_use(cell);
        }
    }

    #[cold]
    fn end_use(&self, cell: &StatCell) {
        let Ok(mut loans) = self.loans.try_borrow_mut() else {
            return;
        };
        if let Some(place) = loans.of(cell)
            && let Some(loan) = loans.current.get_mut(place)
        {
            loan.users = loan.users.saturating_sub(1);
            loans.end_if_unused(place);
            self.is_in_use.set(!loans.current.is_empty());
        }
    }

    /// Ends the loan for a name if nothing uses the cell. It may have been marked as open when the last scope closed.
    pub(super) fn end_unused(&self, id: u32) {
        let Ok(mut loans) = self.loans.try_borrow_mut() else {
            return;
        };
        if let Some(place) = loans.current.iter().position(|loan| loan.id == id) {
            loans.end_if_unused(place);
            self.is_in_use.set(!loans.current.is_empty());
        }
    }

    /// Ends all loans when the thread ends.
    pub(super) fn retire(&self) {
        let Some(Loans { current, spare, .. }) = self.take() else {
            return;
        };
        for loan in current {
            if let Some(name) = name::by_id(loan.id) {
                name.retire(loan.cell);
            }
        }
        spare.into_iter().for_each(stats::put_back);
    }

    fn take(&self) -> Option<Loans> {
        let mut loans = self.loans.try_borrow_mut().ok()?;
        self.is_in_use.set(false);
        Some(std::mem::take(&mut *loans))
    }
}

impl Loans {
    fn of(&self, cell: &StatCell) -> Option<usize> {
        self.current
            .iter()
            .rposition(|loan| std::ptr::eq(loan.cell, cell))
    }

    /// Ends a loan if nothing uses its cell.
    fn end_if_unused(&mut self, place: usize) {
        let is_unused = |loan: &Loan| loan.users == 0 && !loan.cell.is_open();
        let Some(loan) = self.current.get(place).copied().filter(is_unused) else {
            return;
        };
        let _reentrancy = ReentrancyGuard::try_enter();
        self.current.swap_remove(place);
        let Some(cell) = name::by_id(loan.id).and_then(|name| name.take_back(loan.cell)) else {
            return;
        };
        if self.spare.try_reserve(1).is_ok() {
            self.spare.push(cell);
        } else {
            stats::put_back(cell);
        }
    }
}
