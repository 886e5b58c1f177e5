//! Tracks on which slices nest or follow each other, and tracks for slices that would cross others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tracks for slices that may overlap: as many tracks as there are simultaneous slices. Each is known by a `T`.
#[derive(Default)]
pub(super) struct OverlapTracks<T> {
    by_end: BinaryHeap<Reverse<(i64, T)>>,
    count: usize,
}

impl<T: Copy + Ord> OverlapTracks<T> {
    /// Returns a track that is free from `start` to `end`. `make` creates another track, given its number from 1 on.
    pub(super) fn take(&mut self, start: i64, end: i64, make: impl FnOnce(usize) -> T) -> T {
        let free = self.by_end.peek().filter(|lane| lane.0.0 <= start);
        let track = if let Some(Reverse((_, track))) = free.copied() {
            self.by_end.pop();
            track
        } else {
            self.count += 1;
            make(self.count)
        };
        self.by_end.push(Reverse((end, track)));
        track
    }
}

/// A track whose slices nest or follow each other. Keeps an `E` for each open slice.
pub(super) struct NestedTrack<E = ()> {
    /// The open slices with their ends, innermost last.
    open: Vec<(i64, E)>,
    last_start: i64,
}

impl<E> Default for NestedTrack<E> {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            last_start: i64::MIN,
        }
    }
}

impl<E: Copy> NestedTrack<E> {
    /// Adds a slice. Returns `None` if it would cross another one, or if another one that starts later is on the track
    /// already. `make` gets what is kept for the enclosing slice.
    pub(super) fn add<R>(
        &mut self,
        start: i64,
        end: i64,
        make: impl FnOnce(Option<E>) -> (R, E),
    ) -> Option<R> {
        if start < self.last_start {
            return None;
        }
        while self.open.last().is_some_and(|(open, _)| *open <= start) {
            self.open.pop();
        }
        let around = match self.open.last() {
            Some((open, _)) if *open < end => return None,
            around => around.map(|(_, kept)| *kept),
        };
        let (result, kept) = make(around);
        self.last_start = start;
        self.open.push((end, kept));
        Some(result)
    }
}
