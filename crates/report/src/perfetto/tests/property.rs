//! Any time line is read as it was.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::perfetto::tests::reader::Slice as Read;

/// A slice as it has to be found: its track, name, category, start and end.
type Found = (u64, String, String, i64, Option<i64>);

fn slices() -> impl Strategy<Value = Vec<Slice>> {
    let parts = (
        0_u32..4,
        0_u32..2,
        -50_i64..400,
        0_i64..200,
        prop::option::of(0_u32..30),
        0_u32..3,
    );
    let slices = prop::collection::vec(parts, 0..40);
    slices.prop_map(|slices| {
        let made = slices.into_iter();
        made.map(|(track, name, start, length, parent, kind)| {
            let mut made = slice(track, start, length, parent);
            made.name = name;
            if kind == 0 && track == 0 {
                made.kind = SliceKind::FuturePoll;
            }
            made
        })
        .collect()
    })
}

/// Returns the track that the time line has, for a track below it.
fn home(contents: &Contents, slice: &Read) -> u64 {
    let track = &contents.tracks[&slice.track];
    if track.name.contains("overlapping") {
        track.parent.expect("the track it is below")
    } else {
        slice.track
    }
}

proptest! {
    #[test]
    fn any_time_line_is_read_as_it_was(
        slices in slices(),
        start_unix_ns in prop_oneof![Just(0), 1_700_000_000_000_000_000..1_800_000_000_000_000_000_i64],
        samples in prop::collection::vec((0_i64..1000, -1e18_f64..1e18), 0..20),
    ) {
        let mut timeline = empty();
        timeline.start_unix_ns = start_unix_ns;
        timeline.slices = slices;
        let mut samples = samples;
        samples.sort_by_key(|(at, _)| *at);
        timeline.counters = vec![Counter { samples, ..Counter::default() }];
        let contents = written(&timeline);

        // Before 1970 there is no time.
        let offset = if start_unix_ns == 0 {
            -timeline.slices.iter().map(|slice| slice.start_ns).min().unwrap_or_default().min(0)
        } else {
            0
        };
        let name = |index: u32| {
            let name = &timeline.names[index as usize];
            if name.short.is_empty() { &name.text } else { &name.short }.to_string()
        };
        // Tracks are numbered after the process, and the stream's after its device.
        let number = |track: u32| [2, 4, 5, 6][track as usize];
        let category = |kind| match kind {
            SliceKind::Call => "scope",
            SliceKind::FuturePoll => "poll",
            SliceKind::AsyncCall => "future",
            _ => "gpu_scope",
        };
        let start = |slice: &Slice| slice.start_ns + start_unix_ns + offset;
        let mut wanted: Vec<Found> = timeline.slices.iter().map(|slice| (
            number(slice.track),
            name(slice.name),
            category(slice.kind).to_owned(),
            start(slice),
            Some(start(slice) + slice.duration_ns),
        )).collect();
        let mut found: Vec<Found> = contents.slices.iter().map(|slice| (
            home(&contents, slice),
            slice.name.clone(),
            slice.category.clone(),
            slice.start,
            slice.end,
        )).collect();
        wanted.sort();
        found.sort();
        prop_assert_eq!(found, wanted);

        // Arrows lead from parents to children, and to all GPU times that begin after their scopes.
        let mut pairs: BTreeMap<(i64, i64), i64> = BTreeMap::new();
        let mut of_gpu = 0;
        for (index, slice) in (0..).zip(&timeline.slices) {
            let Some(parent) = slice.parent.filter(|parent| (*parent as usize) < timeline.slices.len()) else {
                continue;
            };
            let around = &timeline.slices[parent as usize];
            *pairs.entry((start(around), start(slice))).or_default() += 1;
            let is_after = (around.start_ns, parent) < (slice.start_ns, index);
            of_gpu += usize::from(slice.track == 1 && around.track != 1 && is_after);
        }
        let mut arrows_of_gpu = 0;
        for (from, to) in &contents.arrows {
            let (from, to) = (&contents.slices[*from], &contents.slices[*to]);
            let left = pairs.entry((from.start, to.start)).or_default();
            *left -= 1;
            prop_assert!(*left >= 0, "no parent and child: {:?}", (from, to));
            arrows_of_gpu += usize::from(to.category == "gpu_scope" && from.category != "gpu_scope");
        }
        prop_assert_eq!(arrows_of_gpu, of_gpu);

        let read: Vec<(i64, f64)> = contents.counters.values().flatten().copied().collect();
        let expected = timeline.counters[0].samples.iter();
        let expected: Vec<_> = expected.map(|(at, value)| (at + start_unix_ns + offset, *value)).collect();
        prop_assert_eq!(read, expected);
    }
}
