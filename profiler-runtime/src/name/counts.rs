//! The counts of a name: the cells of running threads, and the totals of threads that have ended.
//!
//! # The cells of a name
//!
//! A cell is written by one thread without synchronization, and read by any thread; see [`StatCell`]. It passes through
//! these states, and each transition holds the lock of its name:
//!
//! 1. *Pooled*: it belongs to no name.
//! 2. *Live*: the thread that took it with [`Name::new_cell`] writes to it. Summaries add it to `folded`.
//! 3. Its thread ends ([`Name::retire`]): the counts move to `folded`, and the cell is
//!    - pooled again, if no scope is open in it; or
//!    - *kept*: a guard that is still held has a reference to it, and finds the name's id in it when it closes. It must
//!      not become another name's cell. [`Name::new_cell`] takes it for another thread that calls this name.
//!
//! Once cells take as much memory as they may, a thread that calls the name for the first time *borrows* a cell while a scope
//! of the name is open on it ([`Name::lend`]). The cell is live meanwhile, and then as that of a thread that ends: its counts
//! move to `folded`, which such threads share. The thread keeps it for the next name.
//!
//! The lock orders the writes of a cell's previous thread before those of its next one.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use profiler_host::sync::{Lock, Locked, ReentrancyGuard, prefetch};
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
use profiler_report::internal::BUCKETS;

use super::Name;
use crate::losses;
use crate::stats::{self, NoCellLeft, StatCell, Totals};

/// How many cells before it is read a cell is prefetched.
const PREFETCHED: usize = 3;

/// The counts of a name on all threads.
#[derive(Debug)]
pub(super) struct Counts(Lock<Shared>);

impl Counts {
    pub(super) const fn new() -> Self {
        Self(Lock::with(Shared::new(), Shared::after_fork))
    }
}

#[derive(Debug)]
struct Shared {
    /// The totals of ended threads, buckets that running threads have spilled, and calls without a cell.
    folded: Totals,
    live: Vec<CellRef>,
    kept: Vec<CellRef>,
    /// Scopes that were closed on other threads, and are open in the cells of their own: the cell, and the serial. Their
    /// threads find out when they close a scope of the name inside.
    moved: Vec<(CellRef, u64)>,
    /// `true` if a thread has borrowed a cell.
    has_lent: bool,
    /// `true` if `live` must be filled from the pool's list of all cells before it is used.
    must_find_cells: bool,
}

impl Shared {
    const fn new() -> Self {
        Self {
            folded: Totals::new(),
            live: Vec::new(),
            kept: Vec::new(),
            moved: Vec::new(),
            has_lent: false,
            must_find_cells: false,
        }
    }

    /// Returns the counts for a child that was forked while another thread held the lock. These totals
    /// are lost, which the summary of the child says.
    fn after_fork() -> Self {
        Self {
            must_find_cells: true,
            ..Self::new()
        }
    }

    /// Makes a cell of the calling thread forget the scopes that are open in it and that other threads have closed. Returns
    /// `true` if one of them was the outermost one.
    fn settle_moved(&mut self, cell: &StatCell) -> bool {
        let mut had_one = false;
        for (_, serial) in self
            .moved
            .extract_if(.., |(of, _)| std::ptr::eq(of.0, cell))
        {
            MOVED.fetch_sub(1, Relaxed);
            self.folded.closed_elsewhere = self.folded.closed_elsewhere.saturating_sub(1);
            cell.note_strays();
            if cell.leave(serial) {
                had_one = true;
            } else {
                cell.forget_presumed_leaked();
            }
        }
        had_one
    }

    /// Notes that a scope of another thread has closed, which was opened in this cell.
    fn close_elsewhere(&mut self, opened_in: &'static StatCell, serial: u64) {
        let of_cell = |moved: &&(CellRef, u64)| std::ptr::eq(moved.0.0, opened_in);
        let is_outermost = opened_in.outermost() == serial;
        if !is_outermost {
            // Its thread has ended, or it was presumed leaked; else it is inside of another one of its name, and is not
            // among the open ones.
            if self.folded.open > 0 {
                self.folded.open -= 1;
                return;
            }
            let known = self.moved.iter().filter(of_cell).count() as u64;
            if known >= opened_in.open_scopes() {
                return;
            }
        }
        self.folded.closed_elsewhere += 1;
        if self.moved.try_reserve(1).is_ok() {
            self.moved.push((CellRef(opened_in), serial));
            MOVED.fetch_add(1, Relaxed);
        }
    }

    /// Makes a cell one of this name. Returns `false` if there is no memory.
    fn add_live(&mut self, id: u32, cell: &'static StatCell) -> bool {
        let has_room = self.live.try_reserve(1).is_ok();
        if has_room {
            cell.belong_to(id);
            self.live.push(CellRef(cell));
        }
        has_room
    }
}

/// The number of all names' `moved`, so that threads need not look.
static MOVED: AtomicUsize = AtomicUsize::new(0);

struct CellRef(&'static StatCell);

impl std::fmt::Debug for CellRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StatCell")
    }
}

impl Name {
    fn counts(&self) -> Locked<'_, Shared> {
        let mut counts = self.counts.0.lock();
        if counts.must_find_cells {
            counts.must_find_cells = false;
            let own = |cell: &&StatCell| cell.name() == self.id;
            counts.live = stats::all_cells().filter(own).map(CellRef).collect();
        }
        counts
    }

    /// Returns a cell of this name, which only the calling thread may write to until it calls [`retire`](Self::retire).
    pub(crate) fn new_cell(&self) -> Result<&'static StatCell, NoCellLeft> {
        let mut counts = self.counts();
        let cell = match counts.kept.pop() {
            Some(CellRef(cell)) => cell,
            None => stats::take()?,
        };
        if counts.add_live(self.id, cell) {
            return Ok(cell);
        }
        drop(counts);
        stats::put_back(cell);
        Err(NoCellLeft::NoMemory)
    }

    /// Lends a cell to the calling thread until it calls [`take_back`](Self::take_back). `spare` is a cell without counts
    /// that the thread has. Returns `None` if there is no memory.
    pub(crate) fn lend(&self, spare: Option<&'static StatCell>) -> Option<&'static StatCell> {
        let mut counts = self.counts();
        let cell = if counts.folded.buckets.reserve() {
            spare.or_else(stats::take_beyond_limit)
        } else {
            None
        };
        let is_live = cell.is_some_and(|cell| counts.add_live(self.id, cell));
        counts.has_lent |= is_live;
        if is_live {
            return cell;
        }
        drop(counts);
        if let Some(cell) = cell.or(spare) {
            stats::put_back(cell);
        }
        None
    }

    /// Moves the counts of a cell that was lent to the name. Returns it without counts, or `None` if it stays with the name.
    pub(crate) fn take_back(&self, cell: &'static StatCell) -> Option<&'static StatCell> {
        self.drain(cell).then(|| {
            stats::mark_free(cell);
            cell
        })
    }

    /// Returns `true` if a thread has borrowed a cell of this name.
    pub(crate) fn has_lent(&self) -> bool {
        self.counts().has_lent
    }

    /// Moves the counts of a cell to the name when its thread ends, and gives the cell back.
    pub(crate) fn retire(&self, cell: &'static StatCell) {
        if self.drain(cell) {
            stats::put_back(cell);
        }
    }

    /// Moves the counts of a cell to the name. Returns `false` if the cell stays with the name.
    fn drain(&self, cell: &'static StatCell) -> bool {
        let mut counts = self.counts();
        if !counts.folded.buckets.reserve() {
            // No memory for the counts. The cell stays live, and nothing is lost.
            return false;
        }
        let every = cell.every.get();
        if let Some(left) = cell.until_logged.get().checked_sub(1) {
            self.sampling.take_over(every, left);
        }
        counts.settle_moved(cell);
        // A guard finds its name by the cell. Nobody knows when the last stray has ended, so the cell is of no other name again.
        let (is_held, has_strays) = (cell.may_be_held(), cell.has_strays());
        // From the end, where one is that was lent.
        if let Some(place) = counts
            .live
            .iter()
            .rposition(|live| std::ptr::eq(live.0, cell))
        {
            counts.live.swap_remove(place);
        }
        cell.drain_into(&mut counts.folded);
        if has_strays {
            cell.note_strays();
        }
        self.next_step
            .fetch_add(std::mem::take(&mut counts.folded.unreported_skips), Relaxed);
        if is_held && counts.kept.try_reserve(1).is_ok() {
            counts.kept.push(CellRef(cell));
        }
        !is_held
    }

    /// Counts a call of a thread that has no cells: it has ended, or there is no memory for them.
    pub(crate) fn count_without_cell(&self, count: impl FnOnce(&StatCell)) {
        self.count_folded(count, |_| ());
    }

    /// Counts a call that was open when its thread ended, and is closed now.
    pub(crate) fn count_after_thread_end(&self, count: impl FnOnce(&StatCell)) {
        self.count_folded(count, |counts| {
            counts.folded.open = counts.folded.open.saturating_sub(1);
        });
    }

    /// Counts a call that was opened on another thread, in a cell of that thread. Nothing is written to the cell.
    pub(crate) fn count_elsewhere(
        &self,
        opened_in: &'static StatCell,
        serial: u64,
        count: impl FnOnce(&StatCell),
    ) {
        self.count_folded(count, |counts| counts.close_elsewhere(opened_in, serial));
    }

    fn count_folded(&self, count: impl FnOnce(&StatCell), then: impl FnOnce(&mut Shared)) {
        // Keep a measured allocator from counting, which would take the same lock again.
        let Some(_reentrancy) = ReentrancyGuard::try_enter() else {
            return losses::count_refused();
        };
        let cell = StatCell::new();
        count(&cell);
        let mut counts = self.counts();
        then(&mut counts);
        if counts.folded.buckets.reserve() {
            cell.drain_into(&mut counts.folded);
        } else {
            losses::count_unmeasured();
        }
    }

    /// Returns a quantile of the times of all threads, in ticks; `None` if nothing was counted, or there is no memory to add
    /// the counts up.
    #[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
    pub(crate) fn quantile(&self, quantile: f64) -> Option<f64> {
        let _reentrancy = ReentrancyGuard::try_enter();
        let mut totals = Totals::new();
        if !totals.buckets.reserve() {
            return None;
        }
        let counts = self.counts();
        let folded = &counts.folded.buckets;
        totals
            .buckets
            .add_run(0, (0..BUCKETS).map(|bucket| folded.at(bucket)));
        for live in &counts.live {
            live.0.read_into(&mut totals);
        }
        let [quantile] = totals.buckets.quantiles([quantile])?;
        Some(quantile)
    }

    /// Returns what all threads have counted so far.
    pub(crate) fn totals(&self) -> Totals {
        let _reentrancy = ReentrancyGuard::try_enter();
        let mut counts = self.counts();
        let mut totals = counts.folded.clone();
        for (index, live) in counts.live.iter().enumerate() {
            // The cells of a name are far from each other, and waiting for each would take most of the time.
            if let Some(later) = counts.live.get(index + PREFETCHED) {
                prefetch::for_reading(later.0);
            }
            live.0.read_into(&mut totals);
        }
        totals.open += u64::try_from(self.open_spans.load(Relaxed)).unwrap_or(0);
        // With the lock still held: a reading that came late would look like a fall.
        totals.note_rises();
        counts.folded.own_rises = totals.own_rises;
        counts.folded.rises = totals.rises;
        totals
    }
}

/// Maintains a cell of the calling thread; see [`StatCell::maintain`]. Returns `false` if that has to be put off.
#[cold]
pub(crate) fn maintain(cell: &StatCell) -> bool {
    // A measured allocator gets here while the profiler holds a lock, perhaps one of those below.
    let Some(_reentrancy) = ReentrancyGuard::try_enter() else {
        return false;
    };
    if let Some(name) = super::by_id(cell.name()) {
        cell.maintain(&mut name.counts().folded);
    }
    true
}

/// Makes a cell of the calling thread forget the scopes that are open in it and that other threads have closed. Returns
/// `true` if one of them was the outermost one.
#[inline(always)]
pub(crate) fn settle_moved(cell: &StatCell) -> bool {
    MOVED.load(Relaxed) != 0 && settle_moved_of(cell)
}

#[cold]
#[inline(never)]
fn settle_moved_of(cell: &StatCell) -> bool {
    let Some(_reentrancy) = ReentrancyGuard::try_enter() else {
        return false;
    };
    let name = super::by_id(cell.name());
    name.is_some_and(|name| name.counts().settle_moved(cell))
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::name::declared;

    fn name(text: &str) -> &'static Name {
        declared(text, Location::caller())
    }

    fn calls(name: &Name) -> u64 {
        name.totals().calls()
    }

    #[test]
    fn totals_add_live_and_retired_cells() {
        let name = name("counts: both");
        let (live, retired) = (name.new_cell().unwrap(), name.new_cell().unwrap());
        for cell in [live, retired] {
            let _ = cell.count(20, 15, true);
        }
        name.retire(retired);
        let totals = name.totals();
        assert_eq!((totals.total, totals.own, calls(name)), (40, 30, 2));
        name.retire(live);
        assert_eq!(calls(name), 2);
    }

    #[test]
    fn a_cell_with_an_open_scope_stays_with_its_name() {
        let name = name("counts: open");
        let cell = name.new_cell().unwrap();
        cell.enter(1);
        name.retire(cell);
        assert_eq!(cell.name(), name.id);
        assert_eq!(name.totals().open, 1);

        name.count_after_thread_end(|cell| _ = cell.count(5, 5, true));
        assert_eq!((name.totals().open, calls(name)), (0, 1));

        // The next thread that calls the name gets that cell.
        let next = name.new_cell().unwrap();
        assert!(std::ptr::eq(next, cell));
        name.retire(next);
        assert_eq!(calls(name), 1);
    }

    #[test]
    fn a_call_without_a_cell_is_counted() {
        let name = name("counts: no cell");
        name.count_without_cell(|cell| _ = cell.count(8, 8, true));
        assert_eq!((name.totals().total, calls(name)), (8, 1));
    }

    #[test]
    fn nothing_is_counted_from_within_the_profiler() {
        let name = name("counts: reentrant");
        let reentrancy = ReentrancyGuard::try_enter();
        name.count_without_cell(|cell| _ = cell.count(8, 8, true));
        drop(reentrancy);
        assert_eq!(calls(name), 0);
    }

    #[test]
    fn a_thread_that_ends_leaves_its_unlogged_calls_to_the_next() {
        let name = name("counts: sampled");
        name.sampling.initial_skips(10);
        let cell = name.new_cell().unwrap();
        cell.every.set(10);
        // One more than the 3 calls that the thread would still have skipped.
        cell.until_logged.set(4);
        name.retire(cell);
        assert_eq!(name.sampling.initial_skips(10), 3);
    }

    #[cfg(all(unix, not(miri)))]
    #[test]
    fn a_child_finds_the_cells_that_a_thread_of_its_parent_held() {
        use crate::fork_and::fork_and;

        let name = name("counts: forked");
        let cell = name.new_cell().unwrap();
        let _ = cell.count(3, 3, true);
        let held = name.counts();
        fork_and(|| calls(name) == 1);
        drop(held);
        name.retire(cell);
    }
}
