//! Tracks on which slices nest or follow each other, and tracks for slices that would cross others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tracks for slices that may overlap: as many tracks as there are simultaneous slices. Each is known by a `T`.
#[derive(Default)]
pub struct OverlapTracks<T> {
    by_end: BinaryHeap<Reverse<(i64, T)>>,
    count: usize,
}

impl<T: Copy + Ord> OverlapTracks<T> {
    /// Returns a track that is free from `start` to `end`. `make` creates another track, given its number from 1 on.
    pub fn take(&mut self, start: i64, end: i64, make: impl FnOnce(usize) -> T) -> T {
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

/// Returns the name of the track with this number, from 1 on, of those that are needed because slices overlap.
#[cfg(any(feature = "export", feature = "trace"))]
pub(crate) fn name_of_track(name: &str, number: usize) -> String {
    match number {
        0 | 1 => name.to_owned(),
        _ => format!("{name}, overlapping {}", number - 1),
    }
}

/// A track whose slices nest or follow each other.
pub struct NestedTrack {
    /// The ends of the open slices, innermost last.
    open: Vec<i64>,
    last_start: i64,
}

impl Default for NestedTrack {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            last_start: i64::MIN,
        }
    }
}

impl NestedTrack {
    /// Adds a slice. Returns `false` if it would cross another one, or if another one that starts later is on the track
    /// already.
    pub fn add(&mut self, start: i64, end: i64) -> bool {
        if start < self.last_start {
            return false;
        }
        self.last_start = start;
        while self.open.pop_if(|open| *open <= start).is_some() {}
        if self.open.last().is_some_and(|open| *open < end) {
            return false;
        }
        self.open.push(end);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_that_would_cross_others_are_refused() {
        let mut track = NestedTrack::default();
        let mut is_added = |start, end| track.add(start, end);
        assert!(is_added(0, 100));
        assert!(is_added(10, 50));
        assert!(!is_added(50, 101));
        assert!(!is_added(10, 60), "it begins before one that was asked for");
        assert!(is_added(50, 100));
        assert!(is_added(100, 100));
    }

    #[test]
    fn slices_that_overlap_get_as_few_tracks_as_possible() {
        let mut tracks = OverlapTracks::default();
        let slices = [(0, 100), (50, 150), (100, 200), (160, 170), (165, 166)];
        let taken = slices.map(|(start, end)| tracks.take(start, end, |number| number));
        assert_eq!(taken, [1, 2, 1, 2, 3]);
    }
}
