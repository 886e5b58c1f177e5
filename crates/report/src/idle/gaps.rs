//! The times in which kernels were not recorded.

use std::collections::HashMap;

use crate::in_order::InOrder as _;
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
            of_rank.order();
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
    pub(super) fn of_rank(&self, rank: Option<u64>) -> &[(i64, i64)] {
        self.0.get(&rank).map_or(&[][..], Vec::as_slice)
    }

    /// Returns `true` if kernels were not recorded at a time.
    pub(crate) fn contain(&self, rank: Option<u64>, at: i64) -> bool {
        let of_rank = self.of_rank(rank);
        let next = of_rank.get(of_rank.partition_point(|(_, end)| *end <= at));
        next.is_some_and(|(start, _)| *start <= at)
    }
}
