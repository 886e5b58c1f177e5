//! How much GPU time the children of a scope took, to compute the scope's own time.
//!
//! A child is a scope inside another one on the same stream. Children are read before their parents, so their times are
//! summed up here until the parent is read.
//!
//! What the scopes inside have counted in totals goes the same way: see [`Inside`].

use std::collections::{HashMap, VecDeque};

use crate::stats::Inside;

/// The most parents that are kept. A parent is a scope that is open or waits for the device, unless its end was lost.
const MAX_PARENTS: usize = 1 << 16;
/// The most intervals that are kept apart for one parent.
const MAX_INTERVALS: usize = 256;
/// The most lost scopes that are remembered for children that are read after them.
const MAX_LOST: usize = 1 << 12;

/// The times of the children of all parents that have not been read, by the keys of the parents.
#[derive(Debug, Default)]
pub(super) struct ChildTimes {
    by_parent: HashMap<u64, Covered>,
    /// The scope around each lost scope.
    outer_of_lost: HashMap<u64, u64>,
    /// The keys of `outer_of_lost`, oldest first.
    lost: VecDeque<u64>,
    /// How many children have been added: a clock that tells old entries from new ones.
    additions: u64,
}

/// The time of a parent that its children cover.
#[derive(Debug, Default)]
struct Covered {
    /// What the scopes inside have counted.
    counted: Inside,
    /// The time that no further child can overlap, in nanoseconds.
    fixed: f64,
    /// The end of the latest interval that was merged into `fixed`.
    fixed_until: f64,
    /// The begin and end of each further interval, in nanoseconds from the parent's begin. Disjoint, and in order.
    intervals: Vec<(f64, f64)>,
    /// The value of [`ChildTimes::additions`] when a child was last added.
    last_addition: u64,
}

impl ChildTimes {
    /// Adds a child that overlaps no other child of its parent, as those of one thread do not.
    pub(super) fn add(&mut self, parent: u64, ns: f64) {
        self.entry(parent).fixed += ns;
    }

    /// Adds a child that may overlap others. `begin` and `end` are in nanoseconds from the parent's begin.
    pub(super) fn add_interval(&mut self, parent: u64, begin: f64, end: f64) {
        self.entry(parent).add_interval(begin, end);
    }

    /// Removes a scope that has no GPU time. Its children count as children of the scope around it, those that are
    /// added later too.
    pub(super) fn remove_lost(&mut self, lost: u64, outer: Option<u64>) {
        let (covered, inside) = self.take(lost);
        let Some(outer) = outer else { return };
        if covered > 0.0 {
            self.add(outer, covered);
        }
        self.pass_on(outer, inside);
        self.outer_of_lost.insert(lost, outer);
        self.lost.push_back(lost);
        if self.lost.len() > MAX_LOST
            && let Some(oldest) = self.lost.pop_front()
        {
            self.outer_of_lost.remove(&oldest);
        }
    }

    /// Passes on what was counted inside a scope to the scope around it.
    pub(super) fn pass_on(&mut self, parent: u64, inside: Inside) {
        if !inside.is_empty() {
            self.entry(parent).counted.add(inside);
        }
    }

    /// Removes a parent. Returns the time that its children took, in nanoseconds, and what was counted inside.
    pub(super) fn take(&mut self, parent: u64) -> (f64, Inside) {
        let of = |covered: Covered| (covered.total(), covered.counted);
        self.by_parent.remove(&parent).map(of).unwrap_or_default()
    }

    /// Returns the entry that a child of this parent is added to.
    fn entry(&mut self, parent: u64) -> &mut Covered {
        let mut parent = parent;
        while let Some(outer) = self.outer_of_lost.get(&parent) {
            parent = *outer;
        }
        self.additions += 1;
        if self.by_parent.len() >= MAX_PARENTS && !self.by_parent.contains_key(&parent) {
            self.remove_old();
        }
        let covered = self.by_parent.entry(parent).or_default();
        covered.last_addition = self.additions;
        covered
    }

    /// Removes the half of the parents whose last child was added longest ago: the ends of those were probably lost. If
    /// one is read nevertheless, its own time is an upper bound.
    fn remove_old(&mut self) {
        let mut additions: Vec<u64> = self
            .by_parent
            .values()
            .map(|covered| covered.last_addition)
            .collect();
        let middle = additions.len() / 2;
        let (_, median, _) = additions.select_nth_unstable(middle);
        let median = *median;
        self.by_parent
            .retain(|_, covered| covered.last_addition >= median);
    }
}

impl Covered {
    fn add_interval(&mut self, begin: f64, end: f64) {
        let (mut begin, mut end) = (begin.max(self.fixed_until), end);
        if end <= begin {
            return;
        }
        // The intervals from `first` to `last` overlap the new one or touch it.
        let first = self
            .intervals
            .partition_point(|interval| interval.1 < begin);
        let last = self.intervals.partition_point(|interval| interval.0 <= end);
        if first < last {
            begin = begin.min(self.intervals[first].0);
            end = end.max(self.intervals[last - 1].1);
        }
        self.intervals.splice(first..last, [(begin, end)]);
        if self.intervals.len() > MAX_INTERVALS {
            // The earliest interval is fixed. A later child that begins before its end is cut off there.
            let (begin, end) = self.intervals.remove(0);
            self.fixed += end - begin;
            self.fixed_until = end;
        }
    }

    fn total(&self) -> f64 {
        let intervals = self.intervals.iter();
        let kept: f64 = intervals.map(|(begin, end)| end - begin).sum();
        self.fixed + kept
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "sums of small integers are exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn overlapping_children_count_once() {
        let mut children = ChildTimes::default();
        for (begin, end) in [
            (10.0, 20.0),
            (15.0, 30.0),
            (40.0, 50.0),
            (12.0, 13.0),
            (30.0, 40.0),
        ] {
            children.add_interval(1, begin, end);
        }
        children.add(1, 5.0);
        assert_eq!(children.take(1).0, 45.0);
        assert_eq!(children.take(1).0, 0.0, "taken once");
    }

    #[test]
    fn the_number_of_parents_is_bounded() {
        let mut children = ChildTimes::default();
        for parent in 0..3 * MAX_PARENTS as u64 {
            children.add(parent, 1.0);
        }
        assert!(children.by_parent.len() <= MAX_PARENTS);
        assert_eq!(children.take(3 * MAX_PARENTS as u64 - 1).0, 1.0);
    }

    #[test]
    fn children_of_a_lost_scope_belong_to_the_scope_around_it() {
        let mut children = ChildTimes::default();
        children.add(2, 3.0);
        children.remove_lost(2, Some(1));
        children.add(2, 4.0);
        // A lost scope inside a lost one.
        children.remove_lost(3, Some(2));
        children.add(3, 5.0);
        assert_eq!((children.take(2).0, children.take(3).0), (0.0, 0.0));
        assert_eq!(children.take(1).0, 12.0);
        // Outside of any other scope, the time belongs to none.
        children.add(4, 6.0);
        children.remove_lost(4, None);
        assert!(children.by_parent.is_empty());
    }

    #[test]
    fn the_number_of_lost_scopes_is_bounded() {
        let mut children = ChildTimes::default();
        for lost in 1..=2 * MAX_LOST as u64 {
            children.remove_lost(lost, Some(lost + (1 << 40)));
        }
        assert_eq!(children.lost.len(), MAX_LOST);
        assert_eq!(children.outer_of_lost.len(), MAX_LOST);
    }

    #[test]
    fn more_intervals_than_are_kept_apart_are_all_counted() {
        let mut children = ChildTimes::default();
        let all = 3 * u16::try_from(MAX_INTERVALS).expect("it is small");
        for child in 0..all {
            let begin = 10.0 * f64::from(child);
            children.add_interval(1, begin, begin + 4.0);
        }
        assert_eq!(children.by_parent[&1].intervals.len(), MAX_INTERVALS);
        // One that begins in the fixed part counts from its end on.
        let until = children.by_parent[&1].fixed_until;
        children.add_interval(1, 0.0, until + 2.0);
        assert_eq!(children.take(1).0, 4.0 * f64::from(all) + 2.0);
    }

    proptest! {
        #[test]
        fn overlapping_children_cover_what_a_model_covers(
            intervals in prop::collection::vec((0_u16..500, 1_u16..60), 0..60),
        ) {
            let mut children = ChildTimes::default();
            let mut model = [false; 600];
            for (begin, length) in intervals {
                children.add_interval(7, begin.into(), (begin + length).into());
                model[begin as usize..(begin + length) as usize].fill(true);
            }
            let expected = model.iter().filter(|covered| **covered).count() as f64;
            prop_assert_eq!(children.take(7).0, expected);
        }
    }
}
