//! The ids of traces and spans, and which trace a slice belongs to.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::parents::Parents;
use crate::{Slice, Timeline};

/// The id of a trace: 16 bytes, not all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceId(u64, u64);

/// The id of a span: 8 bytes, not all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanId(u64);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0, self.1)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The ids of a time line. They follow from when and where it was recorded, so that it has the same ones whenever it is
/// written.
#[derive(Debug)]
pub(super) struct Ids {
    seed: u64,
    /// The step of each slice, by its index; `NONE` outside of steps. A slice belongs to the step in which its outermost
    /// ancestor began.
    steps: Vec<u32>,
    /// The number of steps.
    step_count: usize,
    parents: Parents,
}

const NONE: u32 = u32::MAX;

impl Ids {
    pub(super) fn of(timeline: &Timeline) -> Self {
        let mut hasher = DefaultHasher::new();
        (
            timeline.start_unix_ns,
            &timeline.title,
            timeline.duration_ns,
        )
            .hash(&mut hasher);
        for track in &timeline.tracks {
            (track.process, &track.process_name, track.rank).hash(&mut hasher);
        }
        Self {
            // Sums with an index overflow never, and are never zero.
            seed: hasher.finish() >> 2 | 1 << 63,
            steps: steps(timeline),
            step_count: timeline.steps.len(),
            parents: Parents::of(timeline),
        }
    }

    /// Returns the trace of a step, or that of everything outside of steps.
    pub(super) fn trace(&self, step: Option<usize>) -> TraceId {
        TraceId(self.seed, step.map_or(0, |step| step as u64 + 1))
    }

    /// Returns the step that a slice belongs to.
    pub(super) fn step(&self, slice: usize) -> Option<usize> {
        let step = *self.steps.get(slice)?;
        (step != NONE).then_some(step as usize)
    }

    /// Returns the slice that a slice is a child of.
    pub(super) fn parent(&self, slice: usize) -> Option<u32> {
        self.parents.get(slice)
    }

    pub(super) const fn of_window(&self) -> SpanId {
        SpanId(self.seed)
    }

    pub(super) const fn of_step(&self, step: usize) -> SpanId {
        SpanId(self.seed + 1 + step as u64)
    }

    pub(super) const fn of_slice(&self, slice: usize) -> SpanId {
        SpanId(self.seed + 1 + self.step_count as u64 + slice as u64)
    }
}

/// Returns the step of each slice. Parents come before their children.
fn steps(timeline: &Timeline) -> Vec<u32> {
    let mut steps = Vec::<u32>::with_capacity(timeline.slices.len());
    for slice in &timeline.slices {
        let of_parent = slice.parent.and_then(|parent| steps.get(parent as usize));
        steps.push(
            of_parent
                .copied()
                .unwrap_or_else(|| step_of(timeline, slice)),
        );
    }
    steps
}

/// Returns the step in which a slice began.
fn step_of(timeline: &Timeline, slice: &Slice) -> u32 {
    let after = timeline
        .steps
        .partition_point(|step| step.start_ns <= slice.start_ns);
    let last = after.checked_sub(1);
    let inside = last.filter(|last| slice.start_ns < timeline.steps[*last].end_ns);
    inside.map_or(NONE, |step| u32::try_from(step).unwrap_or(NONE))
}
