//! The order in which slices are written, the slices that would cross others, and arrows.

use std::collections::HashMap;

use crate::report::export::overlap::OverlapTracks;
use crate::report::{Slice, SliceKind, Timeline, Track, TrackKind};

/// The order, the tracks and the arrows of all slices, decided before the first one is written.
pub(super) struct Layout {
    /// The slices in the order of their starts.
    pub(super) order: Vec<u32>,
    /// The slices that would cross others of their track, with the number of the track below it, from 1 on.
    pub(super) beside: HashMap<u32, u32>,
    /// From slice to slice, in the order of the first ones.
    arrows: Vec<(u32, u32)>,
    /// The slices that arrows lead to, in their order.
    targets: Vec<u32>,
}

/// The slices of a track that are open at a time, with their ends, and the tracks below it.
#[derive(Default)]
struct Open {
    slices: Vec<(i64, u32)>,
    lanes: OverlapTracks<u32>,
}

impl Layout {
    /// Slices without a track are left out.
    pub(super) fn new(timeline: &Timeline) -> Self {
        let slices = &timeline.slices;
        let mut order: Vec<u32> = (0..).zip(slices).map(|(index, _)| index).collect();
        order.retain(|index| track_of(timeline, *index).is_some());
        order.sort_by_key(|index| slices[*index as usize].start_ns);
        let mut layout = Self {
            order: Vec::new(),
            beside: HashMap::new(),
            arrows: Vec::new(),
            targets: Vec::new(),
        };
        let mut tracks: Vec<Open> = Vec::new();
        tracks.resize_with(timeline.tracks.len(), Open::default);
        for index in &order {
            let slice = &slices[*index as usize];
            let open = &mut tracks[slice.track as usize];
            let (start, end) = extent(slice);
            while open.slices.last().is_some_and(|(end, _)| *end <= start) {
                open.slices.pop();
            }
            if let Some(parent) = arrow_from(timeline, &open.slices, *index) {
                layout.arrows.push((parent, *index));
            }
            if open.slices.last().is_some_and(|(around, _)| *around < end) {
                let make = |number| u32::try_from(number).unwrap_or(u32::MAX);
                let lane = open.lanes.take(start, end, make);
                layout.beside.insert(*index, lane);
            } else {
                open.slices.push((end, *index));
            }
        }
        layout.arrows.sort_unstable();
        layout.targets = layout.arrows.iter().map(|(_, to)| *to).collect();
        layout.targets.sort_unstable();
        layout.order = order;
        layout
    }

    /// Returns the slices that arrows lead to from this one.
    pub(super) fn arrows_from(&self, slice: u32) -> &[(u32, u32)] {
        let first = self.arrows.partition_point(|(from, _)| *from < slice);
        let count = self.arrows[first..].partition_point(|(from, _)| *from == slice);
        &self.arrows[first..first + count]
    }

    /// Returns `true` if an arrow leads to this slice.
    pub(super) fn has_arrow_to(&self, slice: u32) -> bool {
        self.targets.binary_search(&slice).is_ok()
    }
}

/// Returns the start and the end of a slice.
pub(super) fn extent(slice: &Slice) -> (i64, i64) {
    let end = slice.start_ns.saturating_add(slice.duration_ns.max(0));
    (slice.start_ns, end)
}

fn track_of(timeline: &Timeline, slice: u32) -> Option<&Track> {
    let slice = timeline.slices.get(slice as usize)?;
    timeline.tracks.get(slice.track as usize)
}

/// Returns the parent of a slice if an arrow leads from it: if it is not seen around the slice, and does not begin later.
/// `open` holds the slices around it on its track.
fn arrow_from(timeline: &Timeline, open: &[(i64, u32)], index: u32) -> Option<u32> {
    let slice = &timeline.slices[index as usize];
    let from = slice.parent?;
    let parent = timeline.slices.get(from as usize)?;
    let (own, other) = (track_of(timeline, index)?, track_of(timeline, from)?);
    let is_before = (parent.start_ns, from) < (slice.start_ns, index);
    // A poll has the name of its future.
    if !is_before || slice.kind == SliceKind::FuturePoll || is_same_thread(own, other) {
        return None;
    }
    let is_around = open.iter().rev().any(|(_, around)| {
        let poll = &timeline.slices[*around as usize];
        *around == from || poll.kind == SliceKind::FuturePoll && poll.parent == Some(from)
    });
    (!is_around).then_some(from)
}

/// Returns `true` for the tracks of one thread: a scope whose guard is dropped late is on another one than its parent.
fn is_same_thread(one: &Track, other: &Track) -> bool {
    let thread = |track: &Track| (track.process, track.rank, track.id);
    let are_threads = [one, other]
        .iter()
        .all(|track| track.kind == TrackKind::HostThread);
    are_threads && thread(one) == thread(other)
}
