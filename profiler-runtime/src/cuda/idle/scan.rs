//! The innermost scope of each thread, read from the cells by another thread.
//!
//! A measured thread does nothing for this. Its call stores the serial of a name's outermost open scope in the cell of the
//! name, when it opens, and zero when it closes. Of the cells of one thread, the one with the largest serial is that of the
//! innermost name. (Of a call through another name, `a` in `b` in `a`, that is `b`.)
//!
//! A handle that a thread enters marks the cells of all names around its scope with one serial, and a cell of its own with the
//! same one: the latter says which name is the handle's (`local::links`).
//!
//! [`innermost`](super::innermost) has the memory orderings of these reads. Cells are never freed, and are found by the acquire
//! loads of [`all_cells`](stats::all_cells).
//!
//! # Bounds
//!
//! A round looks at the cells of whole threads until it has seen [`SCANNED`], and goes on with the next thread in the round after
//! it. So each thread is sampled as often as any other, if rarely in programs with thousands of cells. One thread with more
//! cells than that is looked at as a whole. Cells that were made since the last round are all found in one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::ptr;

use super::account::{OUTSIDE, Sample};
use super::innermost::{Shown, innermost};
use crate::stats::{self, StatCell};

/// About how many cells a round looks at to find what is open. A thread is looked at as a whole.
const SCANNED: usize = 512;
/// Of how many cells a round finds out which thread holds them.
const CHECKED: usize = 256;
/// The thread of a cell that was never used.
const NO_THREAD: u32 = 0;
/// The thread of a cell that was given back.
const FREE: u32 = u32::MAX;

impl Shown for StatCell {
    fn outermost(&self) -> u64 {
        self.outermost()
    }

    fn holder(&self) -> (u32, u32) {
        self.holder()
    }
}

/// A cell that was found.
struct Found {
    cell: &'static StatCell,
    /// The thread that held it when it was last checked.
    thread: u32,
    /// Its place among the cells of that thread.
    place: usize,
}

/// The cells by thread, as far as they were found.
#[derive(Default)]
pub(super) struct Scan {
    /// All cells.
    cells: Vec<Found>,
    /// The newest cell of the list of all that is in `cells`.
    newest: Option<&'static StatCell>,
    threads: BTreeMap<u32, Vec<usize>>,
    /// The next cell to check, and the last thread that was scanned.
    checked: usize,
    last: u32,
}

impl Scan {
    /// Adds a sample of each thread of a turn to `found`: its innermost name; [`OUTSIDE`] if a thread of `launching` has no
    /// open scope. Returns which part of all threads that were.
    pub(super) fn round(
        &mut self,
        at: u64,
        launching: &BTreeSet<u32>,
        found: &mut Vec<Sample>,
    ) -> f64 {
        self.find_new();
        self.check();
        let mut left = SCANNED;
        let all = self.threads.len();
        for seen in 1..=all {
            let after = (Bound::Excluded(self.last), Bound::Unbounded);
            let next = self.threads.range(after).next();
            let Some((&thread, cells)) = next.or_else(|| self.threads.first_key_value()) else {
                break;
            };
            self.last = thread;
            let cells_of = cells.iter().filter_map(|index| self.cells.get(*index));
            let name = innermost(thread, cells_of.map(|found| found.cell));
            if name.is_some() || launching.contains(&thread) {
                let name = name.unwrap_or(OUTSIDE);
                let is_off = None;
                found.push(Sample {
                    at,
                    thread,
                    name,
                    is_off,
                });
            }
            left = left.saturating_sub(cells.len());
            if left == 0 {
                return seen as f64 / all as f64;
            }
        }
        1.0
    }

    /// Adds the cells that were made since the last round.
    fn find_new(&mut self) {
        let newest = self.newest;
        let is_new = |cell: &&StatCell| newest.is_none_or(|known| !ptr::eq(*cell, known));
        let before = self.cells.len();
        self.cells
            .extend(stats::all_cells().take_while(is_new).map(|cell| Found {
                cell,
                thread: NO_THREAD,
                place: 0,
            }));
        if let Some(newest) = self.cells.get(before) {
            self.newest = Some(newest.cell);
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
        let Some(found) = self.cells.get_mut(index) else {
            return;
        };
        let (before, after) = (found.thread, found.cell.thread());
        if before == after {
            return;
        }
        let place = found.place;
        found.thread = after;
        if after != NO_THREAD && after != FREE {
            let cells = self.threads.entry(after).or_default();
            found.place = cells.len();
            cells.push(index);
        }
        let Some(cells) = self.threads.get_mut(&before) else {
            return;
        };
        if place < cells.len() {
            cells.swap_remove(place);
        }
        let moved = cells
            .get(place)
            .and_then(|moved| self.cells.get_mut(*moved));
        if let Some(moved) = moved {
            moved.place = place;
        }
        if cells.is_empty() {
            self.threads.remove(&before);
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
    use crate::__private::ScopeBuilder;
    use crate::Handle;
    use crate::local;
    use crate::name::{self, Name};
    use crate::stats::ENTERED;
    use crate::switch::SiteDecision;

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

    /// Opens a scope of a name.
    fn open(name: &'static Name) -> impl Sized {
        ScopeBuilder::new(Some(SiteDecision::new(name.id)), 1).start()
    }

    #[test]
    fn a_thread_directly_inside_a_handle_is_sampled_with_the_name_of_its_scope() {
        // In this order, so that the cells of the names around are before that of the scope, and after it.
        let names = [
            "scan: last",
            "scan: around",
            "scan: has a handle",
            "scan: child",
        ];
        let [last, around, has_handle, child] = names.map(declared);
        let shared = thread::spawn(move || {
            let (_last, _around, _scope) = (open(last), open(around), open(has_handle));
            let handle = Handle::current();
            // With cells of the names around and without them.
            for names in [
                vec![last, around, has_handle],
                vec![has_handle, around, last],
                vec![],
            ] {
                let handle = handle.clone();
                let sampled = thread::spawn(move || {
                    for name in names {
                        drop(open(name));
                    }
                    let (mut scan, thread) = (Scan::default(), this_thread());
                    let mut names = Vec::new();
                    let entered = handle.enter();
                    names.extend(samples_of(&mut scan, thread));
                    let scope = open(child);
                    names.extend(samples_of(&mut scan, thread));
                    drop(scope);
                    names.extend(samples_of(&mut scan, thread));
                    drop(entered);
                    names.extend(samples_of(&mut scan, thread));
                    names
                });
                let inside = has_handle.id | ENTERED;
                let expected = [inside, child.id, inside, OUTSIDE];
                assert_eq!(sampled.join().expect("it does not panic"), expected);
            }
        });
        shared.join().expect("it does not panic");
    }

    #[test]
    fn the_cells_of_a_thread_are_known_by_their_places() {
        let cells: Vec<StatCell> = (0..9).map(|_| StatCell::new()).collect();
        let cells: &'static [StatCell] = cells.leak();
        let mut scan = Scan::default();
        scan.cells.extend(cells.iter().map(|cell| Found {
            cell,
            thread: NO_THREAD,
            place: 0,
        }));
        let move_all = |scan: &mut Scan, is_free: fn(usize) -> bool| {
            for (index, cell) in cells.iter().enumerate() {
                if is_free(index) {
                    stats::mark_free(cell);
                } else {
                    cell.belong_to(1);
                }
                scan.assign(index);
            }
            let known = scan.threads.get(&this_thread());
            let mut known = known.cloned().unwrap_or_default();
            for (place, index) in known.iter().enumerate() {
                assert_eq!(scan.cells[*index].place, place);
            }
            known.sort_unstable();
            let expected: Vec<usize> = (0..cells.len()).filter(|index| !is_free(*index)).collect();
            assert_eq!(known, expected);
        };
        move_all(&mut scan, |_| false);
        move_all(&mut scan, |index| index % 3 == 0);
        move_all(&mut scan, |index| index % 2 == 0);
        move_all(&mut scan, |_| true);
        assert!(scan.threads.is_empty());
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
            .position(|found| ptr::eq(found.cell, cell));
        let index = index.expect("it is in the list of all cells");
        assert_eq!(scan.cells[index].thread, this_thread());
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
        assert_eq!(scan.cells[index].thread, thread);
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
