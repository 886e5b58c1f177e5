//! The times in which kernels were not recorded.

use std::collections::HashMap;

use crate::timeline::Timeline;

/// The gaps of each rank, in their order. None overlaps another one.
#[derive(Debug, Default)]
pub(crate) struct Gaps(HashMap<Option<u64>, Vec<(i64, i64)>>);

impl Gaps {
    pub(crate) fn of(timeline: &Timeline) -> Self {
        let mut gaps = Self::default();
        for gap in &timeline.kernel_gaps {
            let end = gap.start_ns.saturating_add(gap.duration_ns.max(0));
            let of_rank = gaps.0.entry(gap.rank).or_default();
            of_rank.push((gap.start_ns, end));
        }
        for of_rank in gaps.0.values_mut() {
            of_rank.sort_unstable();
            let mut until = i64::MIN;
            for (start, end) in of_rank {
                *start = (*start).max(until);
                *end = (*end).max(*start);
                until = *end;
            }
        }
        gaps
    }

    /// Returns the gaps of a rank.
    pub(crate) fn of_rank(&self, rank: Option<u64>) -> &[(i64, i64)] {
        self.0.get(&rank).map_or(&[][..], Vec::as_slice)
    }

    /// Returns the gaps that end after a time.
    fn after(&self, rank: Option<u64>, from: i64) -> &[(i64, i64)] {
        let of_rank = self.of_rank(rank);
        &of_rank[of_rank.partition_point(|(_, end)| *end <= from)..]
    }

    /// Returns `true` if kernels were not recorded at a time.
    pub(super) fn contain(&self, rank: Option<u64>, at: i64) -> bool {
        let next = self.after(rank, at).first();
        next.is_some_and(|(start, _)| *start <= at)
    }

    /// Returns how long kernels were recorded between two times; zero if the second one is not later.
    pub(super) fn recorded(&self, rank: Option<u64>, from: i64, to: i64) -> i64 {
        let mut recorded = to.saturating_sub(from).max(0);
        for (start, end) in self.after(rank, from) {
            if *start >= to {
                break;
            }
            let inside = (*end).min(to).saturating_sub((*start).max(from));
            recorded = recorded.saturating_sub(inside.max(0));
        }
        recorded.max(0)
    }
}
