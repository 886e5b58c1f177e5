//! The order in which slices and launches are written, those that would cross others, and arrows.

use std::collections::HashMap;

use crate::in_order::InOrder as _;
use crate::overlap::OverlapTracks;
use crate::{Launch, Slice, SliceKind, Timeline, Track, TrackKind};

/// The order, the tracks and the arrows of all slices and launches, decided before the first one is written. Launches are
/// numbered after the slices.
pub(super) struct Layout {
    /// In the order of their starts.
    pub(super) order: Vec<u32>,
    /// The slices that would cross others of their track, with the number of the track below it, from 1 on.
    pub(super) beside: HashMap<u32, u32>,
    /// From slice to slice, in the order of the first ones.
    arrows: Vec<(u32, u32)>,
    /// The slices that arrows lead to, in their order.
    targets: Vec<u32>,
}

/// A slice or a launch.
#[derive(Clone, Copy)]
pub(super) enum Row<'t> {
    Slice(&'t Slice),
    Launch(&'t Launch),
}

impl<'t> Row<'t> {
    pub(super) fn of(timeline: &'t Timeline, index: u32) -> Option<Self> {
        let index = index as usize;
        let slice = timeline.slices.get(index).map(Self::Slice);
        slice.or_else(|| {
            let launch = index.checked_sub(timeline.slices.len())?;
            timeline.launches.get(launch).map(Self::Launch)
        })
    }

    pub(super) fn track(self) -> u32 {
        match self {
            Self::Slice(slice) => slice.track,
            Self::Launch(launch) => launch.track,
        }
    }

    /// Returns the start and the end.
    pub(super) fn extent(self) -> (i64, i64) {
        let (start, duration) = match self {
            Self::Slice(slice) => (slice.start_ns, slice.duration_ns),
            Self::Launch(launch) => (launch.start_ns, launch.duration_ns),
        };
        (start, start.saturating_add(duration.max(0)))
    }
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
        let count = timeline.slices.len() + timeline.launches.len();
        let mut order: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
        order.retain(|index| match Row::of(timeline, *index) {
            // It has a slice, which is written.
            Some(Row::Launch(launch)) if timeline.slice_of(launch.slice).is_some() => false,
            Some(Row::Slice(slice)) if !slice.is_placed() => false,
            _ => track_of(timeline, *index).is_some(),
        });
        order.order_by_key(|index| Row::of(timeline, *index).map(|row| row.extent().0));
        let mut layout = Self {
            order: Vec::new(),
            beside: HashMap::new(),
            arrows: Vec::new(),
            targets: Vec::new(),
        };
        let mut tracks: Vec<Open> = Vec::new();
        tracks.resize_with(timeline.tracks.len(), Open::default);
        for index in &order {
            let Some(row) = Row::of(timeline, *index) else {
                continue;
            };
            let open = &mut tracks[row.track() as usize];
            let (start, end) = row.extent();
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
        layout.arrows.order();
        layout.targets = layout.arrows.iter().map(|(_, to)| *to).collect();
        layout.targets.order();
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

fn track_of(timeline: &Timeline, row: u32) -> Option<&Track> {
    let row = Row::of(timeline, row)?;
    timeline.tracks.get(row.track() as usize)
}

/// Returns the launch of a slice, by its number among the rows, if it began before.
fn launch_of(timeline: &Timeline, slice: &Slice) -> Option<u32> {
    let launch = slice.launch?;
    let known = timeline.launches.get(launch as usize)?;
    let number = timeline.slices.len().checked_add(launch as usize)?;
    let own = timeline.slice_of(known.slice);
    let number = own.or_else(|| u32::try_from(number).ok());
    number.filter(|_| known.start_ns < slice.start_ns)
}

/// Returns the launch of a slice, or else its parent if an arrow leads from it: if it is not seen around the slice, and does
/// not begin later. `open` holds the slices around it on its track.
fn arrow_from(timeline: &Timeline, open: &[(i64, u32)], index: u32) -> Option<u32> {
    let slice = timeline.slices.get(index as usize)?;
    if let Some(launch) = launch_of(timeline, slice) {
        return Some(launch);
    }
    let from = slice.parent?;
    let parent = timeline.slices.get(from as usize)?;
    let (own, other) = (track_of(timeline, index)?, track_of(timeline, from)?);
    let is_before = (parent.start_ns, from) < (slice.start_ns, index);
    // A poll has the name of its future.
    if !is_before || slice.kind == SliceKind::FuturePoll || is_same_thread(own, other) {
        return None;
    }
    let is_around = open.iter().rev().any(|(_, around)| {
        let is_poll = timeline
            .slices
            .get(*around as usize)
            .is_some_and(|poll| poll.kind == SliceKind::FuturePoll && poll.parent == Some(from));
        *around == from || is_poll
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
