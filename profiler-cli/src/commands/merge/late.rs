//! Which rank keeps the others waiting.

use std::collections::HashMap;

use profiler_report::internal::InOrder as _;
use profiler_report::{Step, Timeline};

use super::align::{Aligned, Arrival, Offset, median, pairs};

/// The last rank at one collective or at the end of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Late {
    /// The number of the step, if it is known.
    pub(super) step: Option<u64>,
    /// When the last rank arrived, in nanoseconds since the first rank's trace began.
    pub(super) at_ns: i64,
    /// The index of the rank.
    pub(super) rank: usize,
    /// How much later than the median of the others it arrived.
    pub(super) by_ns: i64,
}

/// Returns the last rank of each step, or of each collective of a program without steps.
///
/// A rank arrives when it begins the collective. Of several in a step, the one with the longest wait counts. Without
/// collectives it arrives when its step ends.
pub(super) fn late(ranks: &[&Timeline], aligned: &Aligned) -> Vec<Late> {
    let (Some(first), Some((here, others))) = (ranks.first(), aligned.arrivals.split_first())
    else {
        return Vec::new();
    };
    let mut late = Vec::new();
    for (collective, here) in here.iter().enumerate() {
        let there: Vec<&[Arrival]> = others.iter().map(|rank| &*rank[collective]).collect();
        late.extend(at_collectives(first, here, &there));
    }
    if late.is_empty() {
        return at_steps(ranks, &aligned.offsets);
    }
    late.order_by_key(|late| (late.step, -late.by_ns));
    late.dedup_by(|later, kept| later.step.is_some() && later.step == kept.step);
    late.order_by_key(|late| late.at_ns);
    late
}

fn at_collectives(first: &Timeline, here: &[Arrival], there: &[&[Arrival]]) -> Vec<Late> {
    let paired: Vec<Vec<(usize, usize)>> = there.iter().map(|there| pairs(here, there)).collect();
    let mut late = Vec::new();
    for (index, arrival) in here.iter().enumerate() {
        let found = paired.iter().zip(there).map(|(pairs, there)| {
            let place = pairs.binary_search_by_key(&index, |(one, _)| *one).ok()?;
            Some(there[pairs[place].1].start)
        });
        let Some(mut starts) = found.collect::<Option<Vec<i64>>>() else {
            continue;
        };
        starts.insert(0, arrival.start);
        late.extend(last(first, &starts, step_at(first, arrival.start)));
    }
    late
}

/// Returns the number of the step that contains a time of the wall clock.
fn step_at(rank: &Timeline, unix_ns: i64) -> Option<u64> {
    let at = unix_ns - rank.start_unix_ns;
    let after = rank.steps.partition_point(|step| step.start_ns <= at);
    let step = rank.steps.get(after.checked_sub(1)?)?;
    (at <= step.end_ns).then_some(step.number)
}

fn at_steps(ranks: &[&Timeline], offsets: &[Offset]) -> Vec<Late> {
    let Some(first) = ranks.first() else {
        return Vec::new();
    };
    let ends = ranks.iter().zip(offsets).map(|(rank, offset)| {
        let steps = rank.steps.iter().rev();
        let end = |step: &Step| rank.start_unix_ns + step.end_ns - offset.ns;
        steps.map(|step| (step.number, end(step))).collect()
    });
    let ends: Vec<HashMap<u64, i64>> = ends.collect();
    let steps = first.steps.iter().filter_map(|step| {
        let ends = ends.iter().map(|ends| ends.get(&step.number).copied());
        let ends: Option<Vec<i64>> = ends.collect();
        last(first, &ends?, Some(step.number))
    });
    steps.collect()
}

/// Returns the last of several arrivals.
fn last(first: &Timeline, arrivals: &[i64], step: Option<u64>) -> Option<Late> {
    let (rank, last) = arrivals
        .iter()
        .copied()
        .enumerate()
        .max_by_key(|(_, at)| *at)?;
    let others = arrivals.iter().copied().enumerate();
    let mut others: Vec<i64> = others
        .filter(|(other, _)| *other != rank)
        .map(|(_, at)| at)
        .collect();
    Some(Late {
        step,
        at_ns: last - first.start_unix_ns,
        rank,
        by_ns: last - median(&mut others),
    })
}

#[cfg(test)]
mod tests {
    use super::super::align::align;
    use super::super::made_up::Rank;
    use super::*;

    fn found(ranks: &[Timeline]) -> Vec<Late> {
        let ranks: Vec<&Timeline> = ranks.iter().collect();
        late(&ranks, &align(&ranks, None))
    }

    #[test]
    fn the_rank_that_begins_its_collective_last_is_named_whatever_its_clock_shows() {
        let ranks = [
            Rank::new(0).steps(10),
            Rank::new(1).ahead(90_000_000).steps(10),
            Rank::new(2).ahead(-5_000_000).late(1_500_000).steps(10),
        ];
        let late = found(&ranks);
        assert_eq!(late.len(), 10);
        for (step, late) in late.iter().enumerate() {
            assert_eq!(late.step, Some(step as u64));
            assert_eq!((late.rank, late.by_ns), (2, 1_500_000));
        }
    }

    #[test]
    fn without_collectives_the_last_end_of_a_step_counts() {
        let mut ranks = [Rank::new(0).steps(4), Rank::new(1).late(700_000).steps(4)];
        for rank in &mut ranks {
            rank.slices.clear();
        }
        // The collective waits for the late rank, and the steps end with it.
        ranks[1].steps[2].end_ns += 9_000;
        let late = found(&ranks);
        assert_eq!((late.len(), late[2].rank, late[2].by_ns), (4, 1, 9_000));
    }
}
