//! Which slice is inside which, as readers of the file see it.

use std::collections::HashMap;

use crate::{Slice, SliceKind, Timeline};

/// Slices that are open on one track, innermost last.
#[derive(Default)]
pub(super) struct OpenSlices(pub(super) Vec<u32>);

impl OpenSlices {
    /// Closes what has ended when a slice begins, as readers do: a slice at the end of another one is not inside it, unless
    /// both have no length.
    pub(super) fn close(&mut self, slices: &[Slice], next: &Slice) {
        let end = |slice: &Slice| slice.start_ns.saturating_add(slice.duration_ns.max(0));
        let start = next.start_ns;
        while let Some(top) = self.0.last().and_then(|top| slices.get(*top as usize)) {
            let is_over = end(top) < start
                || end(top) == start && (end(next) > start || top.start_ns < start);
            if !is_over {
                break;
            }
            self.0.pop();
        }
    }
}

/// Returns the operators that are the only ones inside an operator of their name. TensorBoard's trace plugin would merge the
/// two.
pub(super) fn lone_recursions(timeline: &Timeline) -> HashMap<u32, u32> {
    /// The operators inside of one.
    #[derive(Clone, Copy)]
    enum Inside {
        One(u32),
        Several,
    }
    let slices = &timeline.slices;
    let mut open: HashMap<u32, OpenSlices> = HashMap::new();
    let mut inside: HashMap<u32, Inside> = HashMap::new();
    for (index, slice) in (0..).zip(slices).filter(|(_, slice)| is_operator(slice)) {
        let open = open.entry(slice.track).or_default();
        open.close(slices, slice);
        if let Some(around) = open.0.last().copied() {
            let start = slices[around as usize].start_ns;
            let known = inside.entry(around).or_insert(Inside::One(index));
            let is_first = matches!(known, Inside::One(first) if *first == index);
            // Readers put an operator of length zero into one that begins at that time.
            let is_nothing = |first: u32| {
                let first = &slices[first as usize];
                first.start_ns == start && first.duration_ns <= 0
            };
            *known = match *known {
                Inside::One(_) if is_first => Inside::One(index),
                Inside::One(first) if is_nothing(first) => Inside::One(index),
                _ => Inside::Several,
            };
        }
        open.0.push(index);
    }
    let lone = inside.into_iter().filter_map(|(around, inside)| {
        let Inside::One(only) = inside else {
            return None;
        };
        let name = |index: u32| slices.get(index as usize).map(|slice| slice.name);
        (name(only) == name(around)).then_some((only, around))
    });
    lone.collect()
}

/// Returns `true` for what TensorBoard's trace plugin counts as an operator.
const fn is_operator(slice: &Slice) -> bool {
    matches!(slice.kind, SliceKind::Call | SliceKind::AsyncCall) && slice.category.is_none()
}

/// What the nesting of slices on their track says of one.
#[derive(Clone, Copy)]
pub(super) struct Nested {
    pub(super) parent: Option<u32>,
    /// The time of the slices directly inside it.
    pub(super) inside: i64,
}

/// Returns the slice around each slice of a thread, and the time inside each slice, as the command line computes both.
pub(super) fn nest(timeline: &Timeline) -> (Vec<Option<u32>>, Vec<i64>) {
    let slices = &timeline.slices;
    let (mut parents, mut inside) = (vec![None; slices.len()], vec![0_i64; slices.len()]);
    let mut open: HashMap<u32, OpenSlices> = HashMap::new();
    for (index, slice) in slices.iter().enumerate() {
        if slice.is_on_gpu() || slice.kind == SliceKind::AsyncCall {
            continue;
        }
        let open = open.entry(slice.track).or_default();
        open.close(slices, slice);
        parents[index] = open.0.last().copied();
        if let Some(around) = open.0.last() {
            let inside = &mut inside[*around as usize];
            *inside = inside.saturating_add(slice.duration_ns.max(0));
        }
        open.0.extend(u32::try_from(index));
    }
    (parents, inside)
}
