use std::collections::BTreeMap;
use std::convert::Infallible;

use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct StreamTrack {
    items: Vec<PlacedSlice>,
    pieces: Vec<SelfTimePiece>,
}

impl SliceSink for StreamTrack {
    type Error = Infallible;

    fn item(&mut self, placed: PlacedSlice) -> Result<(), Infallible> {
        self.items.push(placed);
        Ok(())
    }

    fn piece(&mut self, piece: SelfTimePiece) -> Result<(), Infallible> {
        self.pieces.push(piece);
        Ok(())
    }
}

fn drawn(items: &[GpuSlice]) -> StreamTrack {
    let mut drawn = StreamTrack::default();
    place(items, &mut drawn).expect("to memory");
    drawn
}

/// An item known to a microsecond that started on the CPU long before.
fn item(start: i64, length: i64, parent: usize) -> GpuSlice {
    GpuSlice {
        start,
        length,
        uncertainty: 1000,
        host: (0, 1),
        thread: 0,
        parent,
    }
}

fn own(drawn: &StreamTrack, item: usize) -> i64 {
    let pieces = drawn.pieces.iter().filter(|piece| piece.item == item);
    pieces.map(|piece| piece.end - piece.start).sum()
}

#[test]
fn a_child_that_seems_to_begin_before_its_parent_is_inside() {
    let drawn = drawn(&[item(10_000, 50_000, NONE), item(9_400, 20_000, 0)]);
    let ends: Vec<_> = drawn
        .items
        .iter()
        .map(|placed| (placed.start, placed.end, placed.is_beside))
        .collect();
    assert_eq!(ends, [(10_000, 60_000, false), (10_000, 30_000, false)]);
    assert_eq!((own(&drawn, 0), own(&drawn, 1)), (30_000, 20_000));
}

#[test]
fn a_child_that_seems_to_end_after_its_parent_is_moved_and_keeps_its_length() {
    let drawn = drawn(&[item(10_000, 50_000, NONE), item(41_000, 20_000, 0)]);
    assert_eq!((drawn.items[1].start, drawn.items[1].end), (40_000, 60_000));
}

#[test]
fn a_child_that_is_longer_than_its_parent_by_the_clock_is_shortened() {
    let drawn = drawn(&[item(10_000, 20_000, NONE), item(10_000, 20_500, 0)]);
    assert_eq!((drawn.items[1].start, drawn.items[1].end), (10_000, 30_000));
}

#[test]
fn what_follows_is_moved_to_the_end_of_what_was_before() {
    let drawn = drawn(&[item(10_000, 20_000, NONE), item(29_500, 5_000, NONE)]);
    assert_eq!((drawn.items[1].start, drawn.items[1].end), (30_000, 35_000));
}

#[test]
fn nothing_begins_before_its_scope_and_what_is_around_moves_along() {
    let mut items = [item(10_000, 50_000, NONE), item(20_000, 10_000, 0)];
    items[1].host = (22_000, 23_000);
    let drawn = drawn(&items);
    assert_eq!(
        (drawn.items[0].start, drawn.items[1].start),
        (12_000, 22_000)
    );
}

#[test]
fn an_empty_child_at_the_end_of_its_parent_stays_in_it() {
    for late in [0, 300] {
        let drawn = drawn(&[
            item(10_000, 50_000, NONE),
            item(20_000, 10_000, 0),
            item(30_000 + late, 0, 1),
            item(30_000, 10_000, 0),
        ]);
        let order: Vec<usize> = drawn.items.iter().map(|placed| placed.item).collect();
        assert_eq!(order, [0, 1, 2, 3]);
        assert_eq!(drawn.items[2].end, 30_000);
        assert_eq!(drawn.items[3].start, 30_000);
    }
}

#[test]
fn time_without_an_open_scope_belongs_to_none() {
    let drawn = drawn(&[item(10_000, 20_000, NONE), item(50_000, 5_000, 0)]);
    assert_eq!((own(&drawn, 0), own(&drawn, 1)), (20_000, 5_000));
}

#[test]
fn what_follows_something_that_moves_keeps_its_distance_inside() {
    let mut items = [
        item(10_000, 200_000, NONE),
        item(110_000, 50_000, 0),
        item(210_000, 200_000, NONE),
        item(260_000, 50_000, 2),
    ];
    items[0].host = (160_000, 165_000);
    let drawn = drawn(&items);
    let starts: Vec<i64> = drawn.items.iter().map(|placed| placed.start).collect();
    assert_eq!(starts, [160_000, 260_000, 360_000, 410_000]);
    assert_eq!((own(&drawn, 0), own(&drawn, 2)), (150_000, 150_000));
}

#[test]
fn what_is_moved_together_overlaps_as_before() {
    let mut items = [
        item(10_000, 200_000, NONE),
        item(210_000, 100_000, NONE),
        item(260_000, 100_000, NONE),
    ];
    items[0].host = (160_000, 165_000);
    let drawn = drawn(&items);
    let placed: Vec<_> = drawn
        .items
        .iter()
        .map(|placed| (placed.start, placed.is_beside))
        .collect();
    assert_eq!(
        placed,
        [(160_000, false), (360_000, false), (410_000, true)]
    );
}

#[test]
fn what_begins_after_a_moved_time_has_ended_is_not_moved() {
    let mut items = [
        item(0, 1_000_000, NONE),
        item(10_000, 10_000, NONE),
        item(500_000, 10_000, NONE),
    ];
    items[1].host = (60_000, 65_000);
    let starts: Vec<i64> = drawn(&items)
        .items
        .iter()
        .map(|placed| placed.start)
        .collect();
    assert_eq!(starts, [0, 60_000, 500_000]);
}

#[test]
fn what_does_overlap_is_beside_and_no_time_is_handed_out_twice() {
    let drawn = drawn(&[item(0, 100_000, NONE), item(50_000, 100_000, NONE)]);
    assert_eq!(
        (drawn.items[0].is_beside, drawn.items[1].is_beside),
        (false, true)
    );
    assert_eq!((own(&drawn, 0), own(&drawn, 1)), (50_000, 100_000));
}

#[test]
fn a_piece_after_a_child_was_launched_after_the_child() {
    let mut items = [item(100, 50_000, NONE), item(10_000, 10_000, 0)];
    (items[0].host, items[1].host) = ((0, 90), (20, 40));
    let drawn = drawn(&items);
    let launched: Vec<_> = drawn
        .pieces
        .iter()
        .map(|piece| (piece.item, piece.launched))
        .collect();
    assert_eq!(launched, [(0, 0), (1, 20), (0, 40)]);
}

/// Creates a stream: scopes of random lengths and depths in sequence, and the times measured for them.
fn stream() -> impl Strategy<Value = Vec<GpuSlice>> {
    let step = (0_usize..4, 500_i64..20_000, -250_i64..=250, -250_i64..=250);
    (prop::collection::vec(step, 1..40), -900_i64..900).prop_map(|(steps, offset)| {
        let (mut items, mut now, mut open): (Vec<GpuSlice>, i64, Vec<usize>) =
            (Vec::new(), 1_000_000, Vec::new());
        for (depth, gap, early, late) in steps {
            while open.len() > depth {
                now += gap;
                close(&mut items, &mut open, now + late);
            }
            now += gap;
            items.push(GpuSlice {
                start: now + early,
                length: 0,
                uncertainty: 1000,
                host: (now - 1000, now),
                thread: 0,
                parent: open.last().copied().unwrap_or(NONE),
            });
            open.push(items.len() - 1);
        }
        while !open.is_empty() {
            now += 700;
            close(&mut items, &mut open, now);
        }
        for item in &mut items {
            item.start += offset;
        }
        items
    })
}

fn close(items: &mut [GpuSlice], open: &mut Vec<usize>, now: i64) {
    if let Some(item) = open.pop() {
        items[item].length = (now - items[item].start).max(0);
    }
}

proptest! {
    #[test]
    fn what_nested_and_followed_still_does(items in stream()) {
        let drawn = drawn(&items);
        let placed: BTreeMap<usize, PlacedSlice> = drawn.items.iter().map(|placed| (placed.item, *placed)).collect();
        prop_assert_eq!(placed.len(), items.len());
        for (index, item) in items.iter().enumerate() {
            let place = placed[&index];
            prop_assert!(!place.is_beside);
            prop_assert!(item.length - (place.end - place.start) <= 1000, "shortened by more than the clock");
            prop_assert!((place.start - item.start).abs() <= 4000, "moved by {}", place.start - item.start);
            if let Some(around) = placed.get(&item.parent) {
                prop_assert!(around.start <= place.start && place.end <= around.end);
            }
        }
        let together: i64 = drawn.pieces.iter().map(|piece| piece.end - piece.start).sum();
        let roots = items.iter().enumerate().filter(|(_, item)| item.parent == NONE);
        let busy: i64 = roots.map(|(index, _)| placed[&index].end - placed[&index].start).sum();
        prop_assert_eq!(together, busy, "each instant once");
        prop_assert!(drawn.pieces.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
}
