//! Where the GPU times of one stream are drawn.
//!
//! The device passes the events of a stream one after the other, so the times of a stream nest or follow each other,
//! unless scopes of several threads or futures share it. How long each took is known well; when it began is known to
//! its uncertainty only, and to the resolution of the driver's clock. The rules, in this order:
//!
//! 1. Lengths stay what they are.
//! 2. A time does not begin before its scope did on the CPU. Where it seems to, it is moved to there, with all that
//!    is inside of it and around it on the stream, and what follows as far as needed.
//! 3. What overlaps what was before it on the stream, or seems to end after what is around it, by no more than both
//!    are uncertain, is moved by that. Only if it does not fit in what is around it even so, it is shortened.
//! 4. What overlaps by more does overlap: it is drawn on a track beside the stream.
//!
//! Each instant in which anything is open belongs to the scope that was opened last: that is what scopes took
//! themselves, and is handed out in pieces that never overlap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;

/// No item.
pub(super) const NONE: usize = usize::MAX;

/// What the readings of two events are off by, in nanoseconds: the driver tells times in steps of half a
/// microsecond.
const RESOLUTION_NS: i64 = 1000;

/// The GPU time of one scope, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) start: i64,
    pub(super) length: i64,
    pub(super) uncertainty: i64,
    /// The scope on the CPU.
    pub(super) host: (i64, i64),
    pub(super) thread: u32,
    /// The item directly around it; [`NONE`] for none. That stands before it, as what its thread opened before does.
    pub(super) parent: usize,
}

/// Where an item is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) item: usize,
    pub(super) start: i64,
    pub(super) end: i64,
    /// Whether it overlaps what is drawn on the stream's own track.
    pub(super) is_beside: bool,
}

/// A part of an item in which nothing was open inside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) item: usize,
    pub(super) start: i64,
    pub(super) end: i64,
    /// On the CPU, the end of what was inside before; else the scope's start.
    pub(super) launched: i64,
    /// Whether it is the first one of its item.
    pub(super) is_first: bool,
}

/// What takes the items as they are placed, in the order of their starts.
pub(super) trait Draw {
    fn item(&mut self, placed: Placed) -> io::Result<()>;
    fn piece(&mut self, piece: Piece) -> io::Result<()>;
}

/// Places the items of one stream.
pub(super) fn place(items: &[Item], draw: &mut impl Draw) -> io::Result<()> {
    let mut sweep = Sweep {
        items,
        draw,
        open: Vec::new(),
        until: i64::MIN,
    };
    for Begin { item, start, .. } in in_order(items) {
        sweep.open(item, start)?;
    }
    while !sweep.open.is_empty() {
        sweep.close_next()?;
    }
    Ok(())
}

/// The begin of an item.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Begin {
    /// What it is ordered by: one that was opened on a thread after another one of the same tree does not begin before
    /// that, however the clock has it.
    order: i64,
    item: usize,
    start: i64,
}

/// Where items begin by rules 1 and 2, in order.
fn in_order(items: &[Item]) -> Vec<Begin> {
    let mut roots = Vec::with_capacity(items.len());
    let mut shifts = vec![0; items.len()];
    for (index, item) in items.iter().enumerate() {
        let root = match item.parent {
            NONE => index,
            parent => roots[parent],
        };
        roots.push(root);
        let shift = &mut shifts[root];
        *shift = (item.host.0 - item.start).max(*shift);
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

/// What is moved moves along what follows it, as far as there is no room between.
fn keep_apart(items: &[Item], shifts: &mut [i64]) {
    let is_root = |index: &usize| items[*index].parent == NONE;
    let mut roots: Vec<usize> = (0..items.len()).filter(is_root).collect();
    roots.sort_unstable_by_key(|root| (items[*root].start, *root));
    // Those that have not ended, by their ends as measured and as moved; the last end of the others.
    let mut open = BinaryHeap::new();
    let mut until = i64::MIN;
    for root in roots {
        let Item { start, length, .. } = items[root];
        while let Some(Reverse((end, moved))) = open.peek().copied() {
            if end > start + RESOLUTION_NS {
                break;
            }
            until = until.max(moved);
            open.pop();
        }
        let shift = &mut shifts[root];
        *shift = until.saturating_sub(start).max(*shift);
        open.push(Reverse((start + length, start + length + *shift)));
    }
}

struct Open {
    placed: Placed,
    launched: i64,
    has_piece: bool,
}

struct Sweep<'i, D> {
    items: &'i [Item],
    draw: &'i mut D,
    /// In the order of opening.
    open: Vec<Open>,
    /// All before this is handed out.
    until: i64,
}

impl<D: Draw> Sweep<'_, D> {
    fn open(&mut self, item: usize, start: i64) -> io::Result<()> {
        let mut start = self.inside_parent(item, start).max(self.until);
        while let Some(next) = self.next_end() {
            let end = self.open[next].placed.end;
            let before = &self.open[next].placed;
            // One that begins right when the one around it ends is inside of that; later, it is not.
            let is_over = end < start || end == start && before.item != self.items[item].parent;
            if !is_over && !self.follows(item, start, before) {
                break;
            }
            start = start.max(end);
            self.close(next)?;
        }
        let (start, end, is_beside) = self.fit(item, start);
        self.hand_out(start)?;
        let placed = Placed {
            item,
            start,
            end,
            is_beside,
        };
        self.draw.item(placed)?;
        self.open.push(Open {
            placed,
            launched: self.items[item].host.0,
            has_piece: false,
        });
        Ok(())
    }

    /// Where an item begins that seems to begin after the end of the one around it (rule 3).
    fn inside_parent(&self, item: usize, start: i64) -> i64 {
        let parent = self.items[item].parent;
        let parent = self.open.iter().find(|open| open.placed.item == parent);
        let is_after =
            |placed: &&Placed| placed.end < start && start - placed.end <= self.slack(item, placed);
        let parent = parent.map(|open| &open.placed).filter(is_after);
        parent.map_or(start, |placed| placed.end)
    }

    /// Whether an item comes after what seems to end after its start (rule 3).
    fn follows(&self, item: usize, start: i64, before: &Placed) -> bool {
        let is_inside = std::iter::successors(Some(item), |item| {
            Some(self.items[*item].parent).filter(|parent| *parent != NONE)
        })
        .any(|around| around == before.item);
        !is_inside && before.end - start <= self.slack(item, before)
    }

    /// How far two items may seem to overlap that do not.
    fn slack(&self, item: usize, other: &Placed) -> i64 {
        let (item, before) = (&self.items[item], &self.items[other.item]);
        let moved = (other.start - before.start).max(0);
        item.uncertainty + before.uncertainty + moved + RESOLUTION_NS
    }

    /// Start and end of an item inside of what is open, and whether it overlaps that (rules 3 and 4).
    fn fit(&self, item: usize, start: i64) -> (i64, i64, bool) {
        let length = self.items[item].length.max(0);
        let end = start + length;
        let around = self.open.iter().rev().find(|open| !open.placed.is_beside);
        let Some(around) = around.map(|open| &open.placed) else {
            return (start, end, false);
        };
        let over = end - around.end;
        if over <= 0 {
            (start, end, false)
        } else if over <= self.slack(item, around) {
            let earliest = around.start.max(self.until).min(around.end);
            ((around.end - length).max(earliest), around.end, false)
        } else {
            (start, end, true)
        }
    }

    fn next_end(&self) -> Option<usize> {
        let ends = self.open.iter().enumerate().rev();
        ends.min_by_key(|(_, open)| open.placed.end)
            .map(|(index, _)| index)
    }

    fn close_next(&mut self) -> io::Result<()> {
        match self.next_end() {
            Some(next) => self.close(next),
            None => Ok(()),
        }
    }

    fn close(&mut self, index: usize) -> io::Result<()> {
        self.hand_out(self.open[index].placed.end)?;
        let closed = self.open.remove(index).placed;
        let ended = self.items[closed.item].host.1;
        if let Some(top) = self.open.last_mut() {
            let (began, ends) = self.items[top.placed.item].host;
            if (began..=ends).contains(&ended) {
                top.launched = top.launched.max(ended);
            }
        }
        Ok(())
    }

    /// Gives the time up to `end` to the scope that was opened last.
    fn hand_out(&mut self, end: i64) -> io::Result<()> {
        let start = self.until;
        self.until = end.max(start);
        let Some(top) = self.open.last_mut().filter(|_| end > start) else {
            return Ok(());
        };
        self.draw.piece(Piece {
            item: top.placed.item,
            start,
            end,
            launched: top.launched,
            is_first: !std::mem::replace(&mut top.has_piece, true),
        })
    }
}

#[cfg(test)]
mod tests;
