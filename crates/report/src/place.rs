//! Placing the GPU times of one stream.
//!
//! The device passes the events of a stream in order, so the times of a stream nest or follow each other, unless scopes
//! of several threads or futures share it. Lengths are measured well; starts are known only to their uncertainty and to
//! the resolution of the driver's clock. The rules, in this order:
//!
//! 1. Lengths are kept.
//! 2. A time does not start before its scope did on the CPU. If it seems to, it is moved there, together with
//!    everything inside it, what overlaps it on the stream, and what follows as far as needed.
//! 3. A time that overlaps its predecessor, or seems to end after its parent, by no more than the sum of both uncertainties
//!    and of the difference of their moves, is moved by the overlap. Only if it still does not fit inside its parent, it is
//!    shortened.
//! 4. A time that overlaps by more really overlaps: it is drawn on a track beside the stream.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The index that means "none".
pub const NONE: usize = usize::MAX;

/// The error of two event times, in nanoseconds: the driver's clock has a resolution of half a microsecond.
const RESOLUTION_NS: i64 = 1000;

/// The GPU time of one scope, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct GpuSlice {
    /// When it seems to start, in nanoseconds.
    pub start: i64,
    /// How long it takes, in nanoseconds.
    pub length: i64,
    /// How far its start may be off, in nanoseconds.
    pub uncertainty: i64,
    /// The start of the scope on the CPU.
    pub host: i64,
    /// The thread of its scope.
    pub thread: u32,
    /// The index of the enclosing item; [`NONE`] for none. It is smaller than the item's own index, as is that of
    /// everything its thread opened earlier.
    pub parent: usize,
}

/// The position of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedSlice {
    /// The number of the item.
    pub item: usize,
    /// Where it starts, in nanoseconds.
    pub start: i64,
    /// Where it ends, in nanoseconds.
    pub end: i64,
    /// `true` if it overlaps other items on the stream's own track.
    pub is_beside: bool,
}

/// Places the items of one stream. Returns them in the order of their starts.
pub fn place(items: &[GpuSlice]) -> Vec<PlacedSlice> {
    let mut sweep = Sweep {
        items,
        placed: Vec::with_capacity(items.len()),
        open: Vec::new(),
        until: i64::MIN,
    };
    for Begin { item, start, .. } in in_order(items) {
        sweep.open(item, start);
    }
    sweep.placed
}

/// The start of an item.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Begin {
    /// The sort key: an item that a thread opened after another one of the same tree does not start before that,
    /// whatever the clock says.
    order: i64,
    item: usize,
    start: i64,
}

/// Returns the starts of all items after rules 1 and 2, in order.
fn in_order(items: &[GpuSlice]) -> Vec<Begin> {
    let mut roots = Vec::with_capacity(items.len());
    let mut shifts = vec![0; items.len()];
    for (index, item) in items.iter().enumerate() {
        let root = match item.parent {
            NONE => index,
            parent => roots[parent],
        };
        roots.push(root);
        let shift = &mut shifts[root];
        *shift = (item.host - item.start).max(*shift);
    }
    keep_apart(items, &mut shifts);
    let mut begins: Vec<Begin> = Vec::with_capacity(items.len());
    let mut last = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        let start = item.start + shifts[roots[index]];
        let before = last.insert(item.thread, index);
        let before = before.filter(|before| roots[*before] == roots[index]);
        let order = [before, Some(item.parent)]
            .into_iter()
            .flatten()
            .filter_map(|other| begins.get(other))
            .fold(start, |order, other| order.max(other.order));
        begins.push(Begin {
            order,
            item: index,
            start,
        });
    }
    begins.sort_unstable();
    begins
}

/// Moves the roots that follow a moved one, as far as there is no gap between them, and those that overlap it, so that
/// they overlap it as before.
fn keep_apart(items: &[GpuSlice], shifts: &mut [i64]) {
    let is_root = |index: &usize| items[*index].parent == NONE;
    let mut roots: Vec<usize> = (0..items.len()).filter(is_root).collect();
    roots.sort_unstable_by_key(|root| (items[*root].start, *root));
    // The items that have not ended, with their ends as measured and as moved; `until` is the last end of the others.
    let mut open = BinaryHeap::new();
    let mut until = i64::MIN;
    for root in roots {
        let GpuSlice { start, length, .. } = items[root];
        while let Some(Reverse((end, moved))) = open.peek().copied() {
            if end > start + RESOLUTION_NS {
                break;
            }
            until = until.max(moved);
            open.pop();
        }
        let moved = open.iter().map(|Reverse((end, moved))| moved - end);
        let furthest = moved.max().unwrap_or(0);
        let shift = &mut shifts[root];
        *shift = until.saturating_sub(start).max(furthest).max(*shift);
        open.push(Reverse((start + length, start + length + *shift)));
    }
}

struct Sweep<'i> {
    items: &'i [GpuSlice],
    placed: Vec<PlacedSlice>,
    /// In the order of opening.
    open: Vec<PlacedSlice>,
    /// The last start or end so far: nothing is placed before it.
    until: i64,
}

impl Sweep<'_> {
    fn open(&mut self, item: usize, start: i64) {
        let mut start = self.inside_parent(item, start).max(self.until);
        while let Some(next) = self.next_end() {
            let before = &self.open[next];
            let end = before.end;
            // An item that starts exactly at its parent's end is inside it; one that starts later is not.
            let is_over = end < start || end == start && before.item != self.items[item].parent;
            if !is_over && !self.follows(item, start, before) {
                break;
            }
            start = start.max(end);
            self.until = self.until.max(end);
            self.open.remove(next);
        }
        let (start, end, is_beside) = self.fit(item, start);
        self.until = self.until.max(start);
        let placed = PlacedSlice {
            item,
            start,
            end,
            is_beside,
        };
        self.placed.push(placed);
        self.open.push(placed);
    }

    /// Returns the start of an item that seems to start after its parent's end (rule 3).
    fn inside_parent(&self, item: usize, start: i64) -> i64 {
        let parent = self.items[item].parent;
        let parent = self.open.iter().find(|open| open.item == parent);
        let is_after = |placed: &&PlacedSlice| {
            placed.end < start && start - placed.end <= self.slack(item, start, placed)
        };
        let parent = parent.filter(is_after);
        parent.map_or(start, |placed| placed.end)
    }

    /// Returns `true` if an item follows another one that seems to end after its start (rule 3).
    fn follows(&self, item: usize, start: i64, before: &PlacedSlice) -> bool {
        let is_inside = std::iter::successors(Some(item), |item| {
            Some(self.items[*item].parent).filter(|parent| *parent != NONE)
        })
        .any(|around| around == before.item);
        !is_inside && before.end - start <= self.slack(item, start, before)
    }

    /// Returns how far an item at `start` and another one may seem to overlap although they do not: as far as both are
    /// uncertain, and as one has been moved further than the other.
    fn slack(&self, item: usize, start: i64, other: &PlacedSlice) -> i64 {
        let (item, before) = (&self.items[item], &self.items[other.item]);
        let moved = (other.start - before.start) - (start - item.start);
        item.uncertainty + before.uncertainty + moved.abs() + RESOLUTION_NS
    }

    /// Returns start and end of an item inside the open ones, and `true` if it overlaps them (rules 3 and 4).
    fn fit(&self, item: usize, start: i64) -> (i64, i64, bool) {
        let length = self.items[item].length.max(0);
        let end = start + length;
        let around = self.open.iter().rev().find(|open| !open.is_beside);
        let Some(around) = around else {
            return (start, end, false);
        };
        let over = end - around.end;
        if over <= 0 {
            (start, end, false)
        } else if over <= self.slack(item, start, around) {
            let earliest = around.start.max(self.until).min(around.end);
            ((around.end - length).max(earliest), around.end, false)
        } else {
            (start, end, true)
        }
    }

    fn next_end(&self) -> Option<usize> {
        let ends = self.open.iter().enumerate().rev();
        ends.min_by_key(|(_, open)| open.end)
            .map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests;
