//! What the children of open scopes took on the device, so that self times can be told.

use std::collections::{HashMap, VecDeque};

/// Scopes that are waited for at most; each is one that is open or pending, unless its end was lost.
const MAX_PARENTS: usize = 1 << 16;
/// Pieces of time kept apart for each scope whose children overlap.
const MAX_PIECES: usize = 256;
/// Lost scopes that are remembered for their children, which may be read later.
const MAX_HEIRS: usize = 1 << 12;

/// The children's time of scopes that have not ended, by their keys.
#[derive(Debug, Default)]
pub(crate) struct Children {
    by_parent: HashMap<u64, Covered>,
    /// The scopes around lost ones, and the lost ones in the order in which they were.
    heirs: HashMap<u64, u64>,
    lost: VecDeque<u64>,
    /// Counts what is added, to tell old entries from new ones.
    added: u64,
}

/// How much of a scope is covered by its children.
#[derive(Debug, Default)]
struct Covered {
    /// Time that nothing to come can overlap.
    settled: f64,
    /// The end of what is settled.
    until: f64,
    /// Disjoint and in order: begin and end, from the scope's begin.
    pieces: Vec<(f64, f64)>,
    touched: u64,
}

impl Children {
    /// A child that overlaps no other one: those of one thread come one after the other.
    pub(crate) fn add(&mut self, parent: u64, ns: f64) {
        self.entry(parent).settled += ns;
    }

    /// A child that others may overlap, by where it begins and ends.
    pub(crate) fn add_piece(&mut self, parent: u64, begin: f64, end: f64) {
        self.entry(parent).cover(begin, end);
    }

    /// What the children of a lost scope took, or will have taken once they are read, is that of the scope
    /// around it.
    pub(crate) fn pass_on(&mut self, lost: u64, around: Option<u64>) {
        let covered = self.take(lost);
        let Some(around) = around else { return };
        if covered > 0.0 {
            self.add(around, covered);
        }
        self.heirs.insert(lost, around);
        self.lost.push_back(lost);
        if self.lost.len() > MAX_HEIRS
            && let Some(oldest) = self.lost.pop_front()
        {
            self.heirs.remove(&oldest);
        }
    }

    /// What the children of a scope that has ended took.
    pub(crate) fn take(&mut self, parent: u64) -> f64 {
        self.by_parent
            .remove(&parent)
            .map_or(0.0, |covered| covered.total())
    }

    fn entry(&mut self, parent: u64) -> &mut Covered {
        let mut parent = parent;
        while let Some(around) = self.heirs.get(&parent) {
            parent = *around;
        }
        self.added += 1;
        if self.by_parent.len() >= MAX_PARENTS && !self.by_parent.contains_key(&parent) {
            self.forget_old();
        }
        let covered = self.by_parent.entry(parent).or_default();
        covered.touched = self.added;
        covered
    }

    /// Half of the entries go: those whose last child came longest ago. Their scopes will hardly come any
    /// more; if one does, its self time is an upper bound.
    fn forget_old(&mut self) {
        let mut touched: Vec<u64> = self
            .by_parent
            .values()
            .map(|covered| covered.touched)
            .collect();
        let middle = touched.len() / 2;
        let (_, median, _) = touched.select_nth_unstable(middle);
        let median = *median;
        self.by_parent
            .retain(|_, covered| covered.touched >= median);
    }
}

impl Covered {
    fn cover(&mut self, begin: f64, end: f64) {
        let (mut begin, mut end) = (begin.max(self.until), end);
        if end <= begin {
            return;
        }
        let first = self.pieces.partition_point(|piece| piece.1 < begin);
        let last = self.pieces.partition_point(|piece| piece.0 <= end);
        if first < last {
            begin = begin.min(self.pieces[first].0);
            end = end.max(self.pieces[last - 1].1);
        }
        self.pieces.splice(first..last, [(begin, end)]);
        if self.pieces.len() > MAX_PIECES {
            let (begin, end) = self.pieces.remove(0);
            self.settled += end - begin;
            self.until = end;
        }
    }

    fn total(&self) -> f64 {
        let pieces: f64 = self.pieces.iter().map(|(begin, end)| end - begin).sum();
        self.settled + pieces
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "sums of small integers are exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_that_overlap_count_once() {
        let mut children = Children::default();
        for (begin, end) in [
            (10.0, 20.0),
            (15.0, 30.0),
            (40.0, 50.0),
            (12.0, 13.0),
            (30.0, 40.0),
        ] {
            children.add_piece(1, begin, end);
        }
        children.add(1, 5.0);
        assert_eq!(children.take(1), 45.0);
        assert_eq!(children.take(1), 0.0, "taken once");
    }

    #[test]
    fn the_scopes_waited_for_are_bounded() {
        let mut children = Children::default();
        for parent in 0..3 * MAX_PARENTS as u64 {
            children.add(parent, 1.0);
        }
        assert!(children.by_parent.len() <= MAX_PARENTS);
        assert_eq!(children.take(3 * MAX_PARENTS as u64 - 1), 1.0);
    }

    proptest! {
        #[test]
        fn the_union_is_that_of_a_model(pieces in prop::collection::vec((0_u16..500, 1_u16..60), 0..60)) {
            let mut children = Children::default();
            let mut model = [false; 600];
            for (begin, length) in pieces {
                children.add_piece(7, begin.into(), (begin + length).into());
                model[begin as usize..(begin + length) as usize].fill(true);
            }
            let expected = model.iter().filter(|covered| **covered).count() as f64;
            prop_assert_eq!(children.take(7), expected);
        }
    }
}
