//! Octaves: the sixteen buckets of one power of two, and which of them a cell keeps in its window.

use profiler_report::internal::{BUCKETS, first_of};

/// The buckets of an octave.
pub(super) const SUBBUCKETS: usize = 16;
/// The number of octaves: the first one has the times below sixteen ticks.
pub(super) const OCTAVES: usize = BUCKETS / SUBBUCKETS;

/// The calls in each octave.
pub(super) type OctaveCounts = [u64; OCTAVES];

/// The last octave that a window is widened for: up to 16,384 ticks, which are some microseconds. A longer call outside
/// the window takes a few nanoseconds more to count, which is less than a hundredth of it.
const LAST_SHORT: usize = 10;

/// The octaves of the largest window.
pub(super) const MAX_WINDOW: usize = LAST_SHORT + 1;

/// An octave with less than this share of the calls is not worth a place in the window.
const COMMON: u64 = 64;

/// A range of octaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Octaves {
    pub(super) first: usize,
    pub(super) len: usize,
}

impl Octaves {
    /// Returns `len` octaves that end with `last`, or the first or last `len`.
    pub(super) fn up_to(last: usize, len: usize) -> Self {
        let end = (last + 1).clamp(len, OCTAVES);
        Self {
            first: end - len,
            len,
        }
    }

    pub(super) fn contains(self, octave: usize) -> bool {
        (self.first..self.first + self.len).contains(&octave)
    }

    /// Returns the ticks that the octaves hold: from the first number to below the second.
    pub(super) fn ticks(self) -> (u64, u64) {
        let first_tick = |octave| first_of(octave * SUBBUCKETS);
        (first_tick(self.first), first_tick(self.first + self.len))
    }

    /// Returns the window of `len` octaves that holds most of the short calls; of several, the one of the shortest calls.
    pub(super) fn with_most_short_calls(counts: &OctaveCounts, len: usize) -> Self {
        let short = &counts[..=LAST_SHORT];
        let calls = |first: &usize| short.iter().skip(*first).take(len).sum::<u64>();
        // The last of several is the first one from behind.
        let first = (0..=LAST_SHORT).rev().max_by_key(calls).unwrap_or(0);
        Self {
            first: first.min(OCTAVES - len),
            len,
        }
    }

    /// Returns the window for these calls: at least `len` octaves, from the first common one on, with as many further
    /// common ones as are short.
    pub(super) fn for_calls(counts: &OctaveCounts, len: usize) -> Self {
        let all: u64 = counts.iter().sum();
        let is_common = |octave: &usize| counts[*octave].saturating_mul(COMMON) >= all.max(1);
        let first = (0..OCTAVES).find(is_common).unwrap_or(0);
        let last = (first..=LAST_SHORT.max(first)).rfind(is_common);
        let len = len.max(last.unwrap_or(first) + 1 - first);
        Self {
            first: first.min(OCTAVES - len),
            len,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler_report::internal::bucket_of;

    fn octave_of(ticks: u64) -> usize {
        bucket_of(ticks) / SUBBUCKETS
    }

    fn counts(calls: &[(usize, u64)]) -> OctaveCounts {
        let mut counts = [0; OCTAVES];
        for &(octave, count) in calls {
            counts[octave] = count;
        }
        counts
    }

    #[test]
    fn the_ticks_of_octaves_are_those_of_their_buckets() {
        for octave in 0..OCTAVES {
            let (from, to) = Octaves {
                first: octave,
                len: 1,
            }
            .ticks();
            assert_eq!((octave_of(from), octave_of(to - 1)), (octave, octave));
        }
        let whole = Octaves {
            first: 0,
            len: OCTAVES,
        };
        assert_eq!(whole.ticks(), (0, 1 << 48));
        assert_eq!(octave_of(1 << 14), LAST_SHORT + 1);
    }

    #[test]
    fn a_window_ends_with_an_octave() {
        assert_eq!(Octaves::up_to(9, 4), Octaves { first: 6, len: 4 });
        assert_eq!(Octaves::up_to(1, 4), Octaves { first: 0, len: 4 });
        for last in [OCTAVES - 1, OCTAVES] {
            let last = Octaves::up_to(last, 4);
            assert!(last.contains(OCTAVES - 1) && last.contains(OCTAVES - 4));
        }
    }

    #[test]
    fn a_window_begins_with_the_shortest_common_calls() {
        let preempted = counts(&[(3, 900), (4, 90), (12, 1), (20, 3)]);
        assert_eq!(
            Octaves::for_calls(&preempted, 4),
            Octaves { first: 3, len: 4 }
        );
        let rarely_short = counts(&[(1, 1), (6, 500)]);
        assert_eq!(
            Octaves::for_calls(&rarely_short, 4),
            Octaves { first: 6, len: 4 }
        );
    }

    #[test]
    fn a_window_is_widened_for_short_calls_and_not_for_long_ones() {
        let both_short = counts(&[(1, 500), (8, 500)]);
        assert_eq!(
            Octaves::for_calls(&both_short, 4),
            Octaves { first: 1, len: 8 }
        );
        let one_long = counts(&[(1, 500), (LAST_SHORT + 1, 500)]);
        assert_eq!(
            Octaves::for_calls(&one_long, 4),
            Octaves { first: 1, len: 4 }
        );
        let both_long = counts(&[(20, 500), (30, 500)]);
        assert_eq!(
            Octaves::for_calls(&both_long, 4),
            Octaves { first: 20, len: 4 }
        );
    }

    #[test]
    fn a_window_that_is_not_widened_has_most_short_calls() {
        let first =
            |calls: &[(usize, u64)]| Octaves::with_most_short_calls(&counts(calls), 4).first;
        assert_eq!(first(&[(1, 1), (5, 3), (7, 9), (8, 2)]), 5);
        assert_eq!(first(&[(2, 5), (20, 900)]), 0, "long calls do not count");
        assert_eq!(first(&[(3, 4), (9, 4)]), 0);
    }

    #[test]
    fn a_window_stays_within_the_octaves() {
        let longest = counts(&[(OCTAVES - 1, 5)]);
        let window = Octaves::for_calls(&longest, 4);
        assert_eq!(
            window,
            Octaves {
                first: OCTAVES - 4,
                len: 4
            }
        );
        assert!(Octaves::for_calls(&counts(&[]), 4).contains(0));
    }
}
