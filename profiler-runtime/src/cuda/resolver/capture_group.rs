//! Scopes that were captured together, and how often they are polled.

use profiler_report::internal::StreamKey;

use crate::clock::{clock, now};

/// Before its first replay, a group is polled again when its age has grown by this part. The driver answers each of
/// these queries with an error, and there is no other way to ask.
const PART_OF_AGE: f64 = 1.0 / 8.0;
/// The longest time between two polls, in nanoseconds.
const MAX_GAP_NS: f64 = 1e9;
/// With a shorter gap, a group is polled in each round.
const MIN_GAP_NS: f64 = 16e6;

/// Scopes of one stream that were captured together.
pub(super) struct CaptureGroup {
    /// The driver's id of the capture; zero if it has none.
    capture: u64,
    pub(super) stream_key: StreamKey,
    /// The indices of the scopes, in the order in which they ended. The first one is queried for all.
    pub(super) members: Vec<usize>,
    /// The position among the other members of the one that was queried last.
    last_other: usize,
    /// When the group was created, in ticks.
    created: u64,
    /// When the group was last polled, in ticks; zero for never.
    pub(super) last_poll: u64,
    /// `true` if a replay has been read.
    pub(super) has_run: bool,
}

impl CaptureGroup {
    pub(super) fn new(capture: u64, stream_key: StreamKey, member: usize) -> Self {
        Self {
            capture,
            stream_key,
            members: vec![member],
            last_other: 0,
            created: now(),
            last_poll: 0,
            has_run: false,
        }
    }

    /// Returns `true` if a scope of this capture and stream belongs to the group.
    pub(super) fn accepts(&self, capture: u64, stream_key: StreamKey) -> bool {
        capture != 0 && self.capture == capture && self.stream_key == stream_key
    }

    /// Returns how long the group is left alone after a poll, in nanoseconds.
    fn gap_ns(&self) -> f64 {
        if self.has_run {
            return 0.0;
        }
        gap_before_first_replay(age_ns(self.created))
    }

    /// Returns `true` if the group is polled in each round.
    pub(super) fn is_expected(&self) -> bool {
        self.gap_ns() <= MIN_GAP_NS
    }

    /// Returns `true` if the group is to be polled now.
    pub(super) fn is_due(&self, read_all: bool) -> bool {
        read_all || self.is_expected() || age_ns(self.last_poll) >= self.gap_ns()
    }

    /// Returns a member other than the first one, a different one at each call.
    pub(super) fn next_other(&mut self) -> Option<usize> {
        let others = self.members.get(1..).filter(|others| !others.is_empty())?;
        self.last_other = (self.last_other + 1) % others.len();
        others.get(self.last_other).copied()
    }
}

/// Returns the time between two polls of a group of this age that has not been replayed, both in nanoseconds.
fn gap_before_first_replay(age_ns: f64) -> f64 {
    (PART_OF_AGE * age_ns).min(MAX_GAP_NS)
}

/// Returns how long ago a time in ticks was, in nanoseconds.
pub(super) fn age_ns(since: u64) -> f64 {
    clock().nanoseconds(now().saturating_sub(since) as f64)
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "eighths of whole numbers are exact")]
mod tests {
    use super::*;

    #[test]
    fn a_graph_that_has_not_run_is_polled_less_often_the_older_it_is() {
        let gaps = [0.0, 8e6, 8e9, 8e12].map(gap_before_first_replay);
        assert_eq!(gaps, [0.0, 1e6, 1e9, 1e9]);
    }

    #[test]
    fn a_graph_that_has_run_is_polled_in_each_round() {
        let mut group = CaptureGroup::new(7, StreamKey::NOWHERE, 0);
        group.has_run = true;
        group.created = 0;
        assert!(group.is_expected() && group.is_due(false));
    }

    #[test]
    fn the_other_members_take_turns() {
        let mut group = CaptureGroup::new(7, StreamKey::NOWHERE, 0);
        assert_eq!(group.next_other(), None);
        group.members = vec![3, 4, 5, 6];
        let mut others = [(); 6].map(|()| group.next_other());
        others[..3].sort_unstable();
        assert_eq!(others[..3], [Some(4), Some(5), Some(6)]);
        assert_eq!(
            others[3..]
                .iter()
                .filter(|other| **other == Some(4))
                .count(),
            1
        );
    }

    #[test]
    fn captures_without_an_id_are_not_joined() {
        let group = |capture| CaptureGroup::new(capture, StreamKey::NOWHERE, 0);
        assert!(group(7).accepts(7, StreamKey::NOWHERE));
        assert!(!group(7).accepts(8, StreamKey::NOWHERE));
        assert!(!group(0).accepts(0, StreamKey::NOWHERE));
    }
}
