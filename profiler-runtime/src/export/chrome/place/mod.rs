//! Where the GPU times of one stream are drawn.
//!
//! The device passes the events of a stream one after the other, so the times of a stream nest or follow each other,
//! unless scopes of several threads or futures share it. How long each took is known well; when it began is known to
//! its uncertainty only, and to the resolution of the driver's clock. The rules, in this order:
//!
//! 1. Lengths stay what they are.
//! 2. A time does not begin before its scope did on the CPU. Where it seems to, it is moved to there, with all that
//!    is inside of it and around it on the stream.
//! 3. What overlaps what was before it on the stream, or seems to end after what is around it, by no more than both
//!    are uncertain, is moved by that. Only if it does not fit in what is around it even so, it is shortened.
//! 4. What overlaps by more does overlap: it is drawn on a track beside the stream.
//!
//! Each instant in which anything is open belongs to the scope that was opened last: that is what scopes took
//! themselves, and is handed out in pieces that never overlap.

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
    /// The item directly around it, which stands before it; [`NONE`] for none.
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
    for (start, item) in in_order(items) {
        sweep.open(item, start)?;
    }
    while !sweep.open.is_empty() {
        sweep.close_next()?;
    }
    Ok(())
}

/// Items with where they begin by rules 1 and 2, each after the one around it.
fn in_order(items: &[Item]) -> Vec<(i64, usize)> {
    let mut roots = Vec::with_capacity(items.len());
    let mut depths = Vec::with_capacity(items.len());
    let mut shifts = vec![0; items.len()];
    for (index, item) in items.iter().enumerate() {
        let (root, depth) = match item.parent {
            NONE => (index, 0_u32),
            parent => (roots[parent], depths[parent] + 1),
        };
        roots.push(root);
        depths.push(depth);
        let shift = &mut shifts[root];
        *shift = (item.host.0 - item.start).max(*shift);
    }
    let mut starts: Vec<(i64, usize)> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let own = item.start + shifts[roots[index]];
        let around = starts
            .get(item.parent)
            .map_or(i64::MIN, |(start, _)| *start);
        starts.push((own.max(around), index));
    }
    starts.sort_by_key(|(start, item)| (*start, depths[*item], *item));
    starts
}

struct Open {
    placed: Placed,
    launched: i64,
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
        let mut start = start.max(self.until);
        while let Some(next) = self.next_end() {
            let end = self.open[next].placed.end;
            if end > start && !self.follows(item, start, &self.open[next].placed) {
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
        });
        Ok(())
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
        match self.open.last() {
            Some(top) if end > start => self.draw.piece(Piece {
                item: top.placed.item,
                start,
                end,
                launched: top.launched,
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
