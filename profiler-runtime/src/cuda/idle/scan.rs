//! The innermost scope of each thread, read from the cells by another thread.
//!
//! A measured thread does nothing for this. Its call stores the serial of a name's outermost open scope in the cell of the
//! name, when it opens, and zero when it closes. Of the cells of one thread, the one with the largest serial is that of the
//! innermost name. (Of a call through another name, `a` in `b` in `a`, that is `b`.)
//!
//! # Memory orderings
//!
//! All accesses are relaxed, and need no more. Cells are never freed, and are found by the acquire loads of
//! [`all_cells`](stats::all_cells). Each word is read by itself: while a cell moves to another thread, or a scope opens between
//! the reads of two cells, a sample may name a scope that was open a moment before or after. Such a sample is wrong by
//! the time that the scan takes, some microseconds, in the place of an instant. No decision depends on it.
//!
//! # Bounds
//!
//! A round looks at a bounded number of cells, and goes on with the next threads in the round after it. So each thread is sampled
//! as often as any other, if rarely in programs with thousands of cells.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::ptr;

use super::account::{OUTSIDE, Sample};
use crate::stats::{self, StatCell};

/// About how many cells a round looks at to find what is open. A thread is looked at as a whole.
const SCANNED: usize = 512;
/// Of how many cells a round finds out which thread holds them.
const CHECKED: usize = 256;
/// The thread of a cell that was never used.
const NO_THREAD: u32 = 0;
/// The thread of a cell that was given back.
const FREE: u32 = u32::MAX;

/// The cells by thread, as far as they were found.
#[derive(Default)]
pub(super) struct Scan {
    /// All cells, each with the thread that held it when it was last checked.
    cells: Vec<(&'static StatCell, u32)>,
    /// The newest cell of the list of all that is in `cells`.
    newest: Option<&'static StatCell>,
    threads: BTreeMap<u32, Vec<usize>>,
    /// The next cell to check, and the last thread that was scanned.
    checked: usize,
    last: u32,
}

impl Scan {
    /// Adds a sample of each thread of a turn to `found`: its innermost name; [`OUTSIDE`] if a thread of `launching` has no
    /// open scope.
    pub(super) fn round(&mut self, at: u64, launching: &BTreeSet<u32>, found: &mut Vec<Sample>) {
        self.find_new();
        self.check();
        let mut left = SCANNED;
        for _ in 0..self.threads.len() {
            let after = (Bound::Excluded(self.last), Bound::Unbounded);
            let next = self.threads.range(after).next();
            let Some((&thread, cells)) = next.or_else(|| self.threads.first_key_value()) else {
                return;
            };
            self.last = thread;
            let name = self.innermost(thread, cells);
            if name.is_some() || launching.contains(&thread) {
                let name = name.unwrap_or(OUTSIDE);
                found.push(Sample { at, thread, name });
            }
            left = left.saturating_sub(cells.len());
            if left == 0 {
                return;
            }
        }
    }

    fn innermost(&self, thread: u32, cells: &[usize]) -> Option<u32> {
        let cells = cells.iter().filter_map(|index| self.cells.get(*index));
        let open = cells.map(|(cell, _)| (cell.outermost(), *cell));
        let open = open.filter(|(serial, cell)| *serial != 0 && cell.thread() == thread);
        let innermost = open.max_by_key(|(serial, _)| *serial);
        innermost.map(|(_, cell)| cell.name())
    }

    /// Adds the cells that were made since the last round.
    fn find_new(&mut self) {
        let newest = self.newest;
        let is_new = |cell: &&StatCell| newest.is_none_or(|known| !ptr::eq(*cell, known));
        let before = self.cells.len();
        self.cells.extend(
            stats::all_cells()
                .take_while(is_new)
                .map(|cell| (cell, NO_THREAD)),
        );
        if let Some((newest, _)) = self.cells.get(before) {
            self.newest = Some(newest);
        }
        for index in before..self.cells.len() {
            self.assign(index);
        }
    }

    /// Finds out of the next cells which threads hold them.
    fn check(&mut self) {
        for _ in 0..CHECKED.min(self.cells.len()) {
            if self.checked >= self.cells.len() {
                self.checked = 0;
            }
            self.assign(self.checked);
            self.checked += 1;
        }
    }

    fn assign(&mut self, index: usize) {
        let Some((cell, known)) = self.cells.get_mut(index) else {
            return;
        };
        let thread = cell.thread();
        let before = std::mem::replace(known, thread);
        if before == thread {
            return;
        }
        if let Some(cells) = self.threads.get_mut(&before) {
            cells.retain(|other| *other != index);
            if cells.is_empty() {
                self.threads.remove(&before);
            }
        }
        if thread != NO_THREAD && thread != FREE {
            self.threads.entry(thread).or_default().push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;
    use std::sync::mpsc::channel;
    use std::thread;

    use profiler_host::process::thread::number;

    use super::*;
    use crate::local;
    use crate::name::{self, Name};

    #[allow(clippy::cast_possible_truncation, reason = "the lower half")]
    fn this_thread() -> u32 {
        number() as u32
    }

    /// Returns the samples of a thread, of as many rounds as a turn over all threads takes.
    fn samples_of(scan: &mut Scan, thread: u32) -> Vec<u32> {
        let launching = BTreeSet::from([thread]);
        let mut found = Vec::new();
        // Other tests make cells meanwhile.
        for _ in 0..10_000 {
            scan.round(7, &launching, &mut found);
            found.retain(|sample: &Sample| sample.thread == thread);
            if !found.is_empty() {
                break;
            }
        }
        assert!(found.iter().all(|sample| sample.at == 7));
        found.iter().map(|sample| sample.name).collect()
    }

    fn declared(text: &str) -> &'static Name {
        name::declared(text, Location::caller())
    }

    #[test]
    fn the_innermost_name_is_the_open_one_that_is_youngest() {
        let (outer, inner) = (declared("scan: outer"), declared("scan: inner"));
        // A new thread, since the number of cells of this one depends on the other tests.
        let sampled = thread::spawn(move || {
            let (one, two) = (local::cell(outer.id).ok(), local::cell(inner.id).ok());
            let (one, two) = (one.expect("a cell"), two.expect("a cell"));
            let (mut scan, thread) = (Scan::default(), this_thread());
            let mut names = samples_of(&mut scan, thread);
            one.enter(5);
            names.extend(samples_of(&mut scan, thread));
            two.enter(6);
            names.extend(samples_of(&mut scan, thread));
            two.leave(6);
            names.extend(samples_of(&mut scan, thread));
            one.leave(5);
            names.extend(samples_of(&mut scan, thread));
            names
        });
        let expected = [OUTSIDE, outer.id, inner.id, outer.id, OUTSIDE];
        assert_eq!(sampled.join().expect("it does not panic"), expected);
    }

    #[test]
    fn a_cell_that_another_thread_uses_again_is_sampled_there() {
        let name = declared("scan: reused");
        let cell = name.new_cell().expect("there is memory");
        let mut scan = Scan::default();
        scan.find_new();
        let index = scan
            .cells
            .iter()
            .position(|(known, _)| ptr::eq(*known, cell));
        let index = index.expect("it is in the list of all cells");
        assert_eq!(scan.cells[index].1, this_thread());
        // As the cell of a thread that ends goes to the next one that calls the name.
        let (send, receive) = channel();
        cell.enter(1);
        name.retire(cell);
        let next = thread::spawn(move || {
            let again = name.new_cell().expect("there is memory");
            send.send((this_thread(), ptr::from_ref(again).addr()))
        });
        let (thread, address) = receive.recv().expect("it sends");
        next.join()
            .expect("it does not panic")
            .expect("it was received");
        assert_eq!(address, ptr::from_ref(cell).addr());
        scan.assign(index);
        assert_eq!(scan.cells[index].1, thread);
        assert!(scan.threads[&thread].contains(&index));
        let of_this_thread = scan.threads.get(&this_thread());
        assert!(of_this_thread.is_none_or(|cells| !cells.contains(&index)));
    }

    #[test]
    fn a_cell_that_is_lent_again_belongs_to_the_thread_that_borrows_it() {
        let (one, other) = (declared("scan: lent"), declared("scan: lent again"));
        let cell = one.lend(None).expect("there is memory");
        let spare = one.take_back(cell).expect("nothing is open");
        assert_eq!(spare.thread(), FREE);
        let again = other.lend(Some(spare)).expect("there is memory");
        assert_eq!((again.name(), again.thread()), (other.id, this_thread()));
        other.retire(again);
    }
}
