//! The parents of spans.

use crate::{Slice, Timeline};

/// The slice that each slice is a child of, by their indices.
#[derive(Debug)]
pub(super) struct Parents(Vec<Option<u32>>);

impl Parents {
    pub(super) fn of(timeline: &Timeline) -> Self {
        let mut open = vec![Vec::<u32>::new(); timeline.tracks.len()];
        let slices = timeline.slices.iter().zip(0..);
        Self(
            slices
                .map(|(slice, index)| {
                    let around = open
                        .get_mut(slice.track as usize)
                        .and_then(|open| around(timeline, open, slice, index));
                    // Files of other programs may say anything.
                    let parent = slice.parent.filter(|parent| *parent < index);
                    if slice.is_on_gpu() && !is_inside(timeline, slice, parent) {
                        around
                    } else {
                        parent
                    }
                })
                .collect(),
        )
    }

    pub(super) fn get(&self, slice: usize) -> Option<u32> {
        self.0.get(slice).copied().flatten()
    }
}

/// Returns the innermost slice of a track that contains a slice, which is the next one of the track. `open` are those that
/// contain the one before, and that one.
fn around(timeline: &Timeline, open: &mut Vec<u32>, slice: &Slice, index: u32) -> Option<u32> {
    while open
        .last()
        .is_some_and(|last| !is_inside(timeline, slice, Some(*last)))
    {
        open.pop();
    }
    let around = open.last().copied();
    open.push(index);
    around
}

/// Returns `true` if a slice lies within the time of another one.
fn is_inside(timeline: &Timeline, slice: &Slice, outer: Option<u32>) -> bool {
    let outer = outer.and_then(|outer| timeline.slices.get(outer as usize));
    let end = |slice: &Slice| slice.start_ns.saturating_add(slice.duration_ns);
    outer.is_some_and(|outer| outer.start_ns <= slice.start_ns && end(slice) <= end(outer))
}
