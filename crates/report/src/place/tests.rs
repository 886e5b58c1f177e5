use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// An item known to a microsecond that started on the CPU long before.
fn item(start: i64, length: i64, parent: usize) -> GpuSlice {
    GpuSlice {
        start,
        length,
        uncertainty: 1000,
        host: 0,
        thread: 0,
        parent,
    }
}

#[test]
fn a_child_that_seems_to_begin_before_its_parent_is_inside() {
    let placed = place(&[item(10_000, 50_000, NONE), item(9_400, 20_000, 0)]);
    let ends: Vec<_> = placed
        .iter()
        .map(|placed| (placed.start, placed.end, placed.is_beside))
        .collect();
    assert_eq!(ends, [(10_000, 60_000, false), (10_000, 30_000, false)]);
}

#[test]
fn a_child_that_seems_to_end_after_its_parent_is_moved_and_keeps_its_length() {
    let placed = place(&[item(10_000, 50_000, NONE), item(41_000, 20_000, 0)]);
    assert_eq!((placed[1].start, placed[1].end), (40_000, 60_000));
}

#[test]
fn a_child_that_is_longer_than_its_parent_by_the_clock_is_shortened() {
    let placed = place(&[item(10_000, 20_000, NONE), item(10_000, 20_500, 0)]);
    assert_eq!((placed[1].start, placed[1].end), (10_000, 30_000));
}

#[test]
fn what_follows_is_moved_to_the_end_of_what_was_before() {
    let placed = place(&[item(10_000, 20_000, NONE), item(29_500, 5_000, NONE)]);
    assert_eq!((placed[1].start, placed[1].end), (30_000, 35_000));
}

#[test]
fn nothing_begins_before_its_scope_and_what_is_around_moves_along() {
    let mut items = [item(10_000, 50_000, NONE), item(20_000, 10_000, 0)];
    items[1].host = 22_000;
    let placed = place(&items);
    assert_eq!((placed[0].start, placed[1].start), (12_000, 22_000));
}

#[test]
fn an_empty_child_at_the_end_of_its_parent_stays_in_it() {
    for late in [0, 300] {
        let placed = place(&[
            item(10_000, 50_000, NONE),
            item(20_000, 10_000, 0),
            item(30_000 + late, 0, 1),
            item(30_000, 10_000, 0),
        ]);
        let order: Vec<usize> = placed.iter().map(|placed| placed.item).collect();
        assert_eq!(order, [0, 1, 2, 3]);
        assert_eq!(placed[2].end, 30_000);
        assert_eq!(placed[3].start, 30_000);
    }
}

#[test]
fn what_follows_something_that_moves_keeps_its_distance_inside() {
    let mut items = [
        item(10_000, 200_000, NONE),
        item(110_000, 50_000, 0),
        item(210_000, 200_000, NONE),
        item(260_000, 50_000, 2),
    ];
    items[0].host = 160_000;
    let placed = place(&items);
    let starts: Vec<i64> = placed.iter().map(|placed| placed.start).collect();
    assert_eq!(starts, [160_000, 260_000, 360_000, 410_000]);
}

#[test]
fn what_is_moved_together_overlaps_as_before() {
    let mut items = [
        item(10_000, 200_000, NONE),
        item(210_000, 100_000, NONE),
        item(260_000, 100_000, NONE),
    ];
    items[0].host = 160_000;
    let placed = place(&items);
    let placed: Vec<_> = placed
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
    items[1].host = 60_000;
    let starts: Vec<i64> = place(&items).iter().map(|placed| placed.start).collect();
    assert_eq!(starts, [0, 60_000, 500_000]);
}

#[test]
fn what_does_overlap_is_beside() {
    let placed = place(&[item(0, 100_000, NONE), item(50_000, 100_000, NONE)]);
    assert_eq!((placed[0].is_beside, placed[1].is_beside), (false, true));
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
                host: now - 1000,
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
        let placed = place(&items);
        let placed: BTreeMap<usize, PlacedSlice> = placed.iter().map(|placed| (placed.item, *placed)).collect();
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
    }
}
