//! Tracks beside each other, for spans that overlap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tracks on which spans follow each other: as many as there are spans at once, up to a limit.
pub(crate) struct Lanes {
    by_end: BinaryHeap<Reverse<(i64, u32)>>,
    count: u32,
    limit: u32,
}

impl Lanes {
    pub(crate) const fn new(limit: u32) -> Self {
        Self {
            by_end: BinaryHeap::new(),
            count: 0,
            limit,
        }
    }

    /// Returns the number, from 1, of a track that is free from `start` to `end`; `None` if there is no track left.
    /// Each call must begin no earlier than the one before it.
    pub(crate) fn take(&mut self, start: i64, end: i64) -> Option<u32> {
        let free = self.by_end.peek().filter(|lane| lane.0.0 <= start);
        let lane = if let Some(Reverse((_, lane))) = free.copied() {
            self.by_end.pop();
            lane
        } else if self.count < self.limit {
            self.count += 1;
            self.count
        } else {
            return None;
        };
        self.by_end.push(Reverse((end, lane)));
        Some(lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_tracks_as_spans_at_once_up_to_the_limit() {
        let mut lanes = Lanes::new(2);
        assert_eq!(lanes.take(0, 10), Some(1));
        assert_eq!(lanes.take(5, 20), Some(2));
        assert_eq!(lanes.take(9, 12), None);
        assert_eq!(lanes.take(10, 30), Some(1));
        assert_eq!(lanes.take(25, 26), Some(2));
    }
}
