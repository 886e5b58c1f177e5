//! Which slice is inside which, as readers of the file see it.

use std::collections::HashMap;

use crate::{Slice, SliceKind, Timeline};

/// Slices that are open on one track, innermost last, each with something that is known of it.
#[derive(Clone)]
pub(super) struct OpenSlices<T>(pub(super) Vec<(u32, T)>);

impl<T> Default for OpenSlices<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> OpenSlices<T> {
    /// Closes what has ended when a slice begins, as readers do: a slice at the end of another one is not inside it, unless
    /// both have no length. Calls `closed` with each.
    pub(super) fn close(&mut self, slices: &[Slice], next: &Slice, mut closed: impl FnMut(u32, T)) {
        let end = |slice: &Slice| slice.start_ns.saturating_add(slice.duration_ns.max(0));
        let start = next.start_ns;
        let is_over = |top: &mut (u32, T)| {
            slices.get(top.0 as usize).is_some_and(|top| {
                let at = end(top);
                at < start || at == start && (end(next) > start || top.start_ns < start)
            })
        };
        while let Some((top, known)) = self.0.pop_if(is_over) {
            closed(top, known);
        }
    }

    /// Closes all.
    fn close_all(&mut self, mut closed: impl FnMut(u32, T)) {
        while let Some((top, known)) = self.0.pop() {
            closed(top, known);
        }
    }
}

/// What is open on each track of a time line, and on those that it does not have.
struct OpenOnTracks<T>(Vec<OpenSlices<T>>);

impl<T> OpenOnTracks<T> {
    fn new(timeline: &Timeline) -> Self {
        let tracks = timeline.tracks.len() + 1;
        Self(
            std::iter::repeat_with(OpenSlices::default)
                .take(tracks)
                .collect(),
        )
    }

    fn of(&mut self, slice: &Slice) -> &mut OpenSlices<T> {
        let unknown = self.0.len() - 1;
        &mut self.0[unknown.min(slice.track as usize)]
    }
}

/// Returns the operators that are the only ones inside an operator of their name, with the one around. TensorBoard's trace
/// plugin would merge the two.
pub(super) fn lone_recursions(timeline: &Timeline) -> HashMap<u32, u32> {
    /// The operators inside of one.
    #[derive(Clone, Copy)]
    enum Inside {
        Nothing,
        One(u32),
        Several,
    }
    let slices = &timeline.slices;
    let mut lone = HashMap::new();
    let mut closed = |around: u32, inside: Inside| {
        let name = |index: u32| slices[index as usize].name;
        if let Inside::One(only) = inside
            && name(only) == name(around)
        {
            lone.insert(only, around);
        }
    };
    let mut tracks = OpenOnTracks::new(timeline);
    for (index, slice) in (0..).zip(slices).filter(|(_, slice)| is_operator(slice)) {
        let open = tracks.of(slice);
        open.close(slices, slice, &mut closed);
        if let Some((around, inside)) = open.0.last_mut() {
            let start = slices[*around as usize].start_ns;
            // Readers put an operator of length zero into one that begins at that time.
            let is_nothing = |first: u32| {
                let first = &slices[first as usize];
                first.start_ns == start && first.duration_ns <= 0
            };
            *inside = match *inside {
                Inside::Nothing => Inside::One(index),
                Inside::One(first) if is_nothing(first) => Inside::One(index),
                _ => Inside::Several,
            };
        }
        open.0.push((index, Inside::Nothing));
    }
    for open in &mut tracks.0 {
        open.close_all(&mut closed);
    }
    lone
}

/// Returns `true` for what TensorBoard's trace plugin counts as an operator.
const fn is_operator(slice: &Slice) -> bool {
    matches!(slice.kind, SliceKind::Call | SliceKind::AsyncCall) && slice.category.is_none()
}

/// What the nesting of slices on their track does not show of one, as the command line sees it.
#[derive(Clone, Copy, Default)]
pub(super) struct NotNested {
    /// Its parent is not the slice around it.
    pub(super) parent: bool,
    /// Its own time is not what the slices directly inside leave.
    pub(super) own: bool,
}

/// Returns what the nesting does not show of each slice of a thread.
pub(super) fn not_nested(timeline: &Timeline) -> Vec<NotNested> {
    let slices = &timeline.slices;
    let mut not_nested = vec![NotNested::default(); slices.len()];
    let mut tracks = OpenOnTracks::new(timeline);
    let closed = |not_nested: &mut [NotNested], index: u32, inside: i64| {
        not_nested[index as usize].own = !shows_own(&slices[index as usize], inside);
    };
    for (index, slice) in (0..).zip(slices) {
        if slice.is_on_gpu() {
            continue;
        }
        if slice.kind == SliceKind::AsyncCall {
            not_nested[index as usize] = NotNested {
                parent: slice.parent.is_some(),
                own: !shows_own(slice, 0),
            };
            continue;
        }
        let open = tracks.of(slice);
        open.close(slices, slice, |index, inside| {
            closed(&mut not_nested, index, inside);
        });
        let around = open.0.last().map(|(around, _)| *around);
        not_nested[index as usize].parent = around != slice.parent;
        if let Some((_, inside)) = open.0.last_mut() {
            *inside = inside.saturating_add(slice.duration_ns.max(0));
        }
        open.0.push((index, 0_i64));
    }
    for open in &mut tracks.0 {
        open.close_all(|index, inside| closed(&mut not_nested, index, inside));
    }
    not_nested
}

/// Returns `true` if the own time of a slice is what the time inside leaves of it.
pub(super) fn shows_own(slice: &Slice, inside: i64) -> bool {
    slice.duration_ns.saturating_sub(inside).max(0) == slice.self_ns
}
