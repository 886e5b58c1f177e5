//! The GPU times of scopes around the kernels and copies that ran in them.
//!
//! Kernels and copies have exact times. The starts of scopes are known only to their uncertainty, so the kernels show more
//! exactly where a scope was: it began before the first one that it launched, and ended after the last one. Nothing here
//! moves a kernel, or a scope by more than both are uncertain.

use super::place::{GpuSlice, NONE, PlacedSlice, RESOLUTION_NS};

/// A kernel, a copy or a fill on a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkSpan {
    pub(super) start: i64,
    pub(super) end: i64,
    /// The index of the innermost scope with a GPU time on the stream that launched it; [`NONE`] for none.
    pub(super) item: usize,
}

/// The work that an item and those inside it launched.
#[derive(Clone, Copy)]
struct Inside {
    /// The indices of the first and of the last one to begin.
    first: usize,
    last: usize,
    /// The last end.
    end: i64,
}

impl Inside {
    fn with(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            end: self.end.max(other.end),
        }
    }
}

/// Returns the items of a stream with their starts moved, so that they enclose the work that they launched and no other,
/// as far as that is within their uncertainty. `work` is in the order of its starts.
pub(super) fn moved_around(items: &[GpuSlice], work: &[WorkSpan]) -> Vec<GpuSlice> {
    let mut inside: Vec<Option<Inside>> = vec![None; items.len()];
    let add = |inside: &mut Vec<Option<Inside>>, item: usize, more: Inside| {
        if let Some(known) = inside.get_mut(item) {
            *known = Some(known.map_or(more, |known| known.with(more)));
        }
    };
    for (index, one) in work.iter().enumerate() {
        let more = Inside {
            first: index,
            last: index,
            end: one.end,
        };
        add(&mut inside, one.item, more);
    }
    // A parent comes before its children.
    for index in (0..items.len()).rev() {
        if let Some(more) = inside[index] {
            add(&mut inside, items[index].parent, more);
        }
    }
    let items = items.iter().zip(inside);
    items
        .map(|(item, inside)| GpuSlice {
            start: inside.map_or(item.start, |inside| moved_start(item, inside, work)),
            ..*item
        })
        .collect()
}

fn moved_start(item: &GpuSlice, inside: Inside, work: &[WorkSpan]) -> i64 {
    let (earliest, latest) = (inside.end - item.length, work[inside.first].start);
    // The clocks are read with a limited resolution: the work may seem to take longer than the scope.
    let (mut earliest, mut latest) = (earliest.min(latest), earliest.max(latest));
    let before = inside.first.checked_sub(1).map(|before| work[before].end);
    if let Some(before) = before.filter(|before| *before <= latest) {
        earliest = earliest.max(before);
    }
    let after = work.get(inside.last + 1).map(|after| after.start);
    if let Some(after) = after.filter(|after| after - item.length >= earliest) {
        latest = latest.min(after - item.length);
    }
    let start = item.start.clamp(earliest, latest);
    let is_near = (start - item.start).abs() <= item.uncertainty + RESOLUTION_NS;
    if is_near { start } else { item.start }
}

/// Returns start and end of an item such that it crosses no work: what it begins or ends in the middle of is inside the
/// item if the item launched it, otherwise outside. Returns `None` if that would move it by more than it is uncertain.
/// `work` is in the order of its starts, and does not overlap.
pub(super) fn extent_around(
    placed: PlacedSlice,
    items: &[GpuSlice],
    work: &[WorkSpan],
) -> Option<(i64, i64)> {
    let PlacedSlice {
        item, start, end, ..
    } = placed;
    let crossed = |at: i64| {
        let place = work.partition_point(|one| one.end <= at);
        work.get(place).filter(|one| one.start < at)
    };
    let begins = crossed(start).map_or(start, |one| {
        let is_own = launched_in(items, one.item, item);
        if is_own { one.start } else { one.end }
    });
    let ends = crossed(end).map_or(end, |one| {
        let is_own = launched_in(items, one.item, item);
        if is_own { one.end } else { one.start }
    });
    let slack = items[item].uncertainty + RESOLUTION_NS;
    let is_near = (begins - start).abs() <= slack && (ends - end).abs() <= slack;
    (is_near && begins < ends).then_some((begins, ends))
}

/// Returns `true` if `item` is `inner` or around it.
fn launched_in(items: &[GpuSlice], inner: usize, item: usize) -> bool {
    let up = |index: &usize| items.get(*index).map(|inner| inner.parent);
    std::iter::successors(Some(inner).filter(|inner| *inner != NONE), |index| {
        up(index).filter(|parent| *parent != NONE)
    })
    .any(|around| around == item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(start: i64, length: i64, parent: usize) -> GpuSlice {
        GpuSlice {
            start,
            length,
            uncertainty: 2000,
            host: (0, 0),
            thread: 0,
            parent,
        }
    }

    fn work(start: i64, end: i64, item: usize) -> WorkSpan {
        WorkSpan { start, end, item }
    }

    #[test]
    fn an_item_moves_to_enclose_the_work_inside_and_no_other() {
        let items = [item(10_000, 50_000, NONE), item(19_000, 20_000, 0)];
        let spans = [
            work(5_000, 8_500, NONE),
            work(9_000, 20_000, 0),
            work(38_000, 40_500, 1),
            work(60_000, 70_000, NONE),
        ];
        let moved = moved_around(&items, &spans);
        assert_eq!(moved[0].start, 9_000, "before its first work");
        assert_eq!(moved[1].start, 20_500, "its last work ends with it");
        assert_eq!((moved[0].length, moved[1].length), (50_000, 20_000));
    }

    #[test]
    fn an_item_that_is_far_from_its_work_stays() {
        let items = [item(10_000, 50_000, NONE)];
        let moved = moved_around(&items, &[work(0, 1_000, 0)]);
        assert_eq!(moved[0].start, 10_000);
    }

    #[test]
    fn work_is_inside_of_the_item_that_launched_it_and_outside_of_others() {
        let items = [item(0, 0, NONE), item(0, 0, NONE)];
        let spans = [work(100, 200, 0), work(200, 300, 1)];
        let placed = |item, start, end| PlacedSlice {
            item,
            start,
            end,
            is_beside: false,
        };
        assert_eq!(
            extent_around(placed(0, 150, 210), &items, &spans),
            Some((100, 200))
        );
        assert_eq!(
            extent_around(placed(1, 150, 210), &items, &spans),
            Some((200, 300))
        );
        assert_eq!(
            extent_around(placed(1, 110, 190), &items, &spans),
            None,
            "nothing is left of it"
        );
        let far = [work(0, 100_000, NONE)];
        assert_eq!(
            extent_around(placed(0, 50_000, 150_000), &items, &far),
            None
        );
    }
}
