//! The clocks of the ranks against each other.
//!
//! The wall clocks of machines differ. A collective ends on all ranks at nearly one time, because it needs all of them, so
//! the differences of its ends are those of the clocks, up to its own latency. The median over many collectives removes
//! single late ends, and the spread around it is the uncertainty.

use profiler_runtime::report::{SliceKind, Timeline};

/// The fewest common collectives from which the difference of two clocks is concluded.
const MIN_PAIRS: usize = 3;
/// No alignment is claimed to be more exact: the latency of a collective differs between ranks by about as much.
const LEAST_UNCERTAINTY_NS: i64 = 1_000;
/// The standard deviation of a normal distribution over its median absolute deviation.
const DEVIATION: f64 = 1.4826;

/// Parts of the names of collectives, in lower case and without `_`.
const COLLECTIVES: [&str; 9] = [
    "nccl",
    "allreduce",
    "allgather",
    "reducescatter",
    "alltoall",
    "broadcast",
    "barrier",
    "synchronizeranks",
    "rccl",
];

/// A collective on one rank, in nanoseconds of the rank's wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) start: i64,
    pub(super) end: i64,
}

/// How far the clock of a rank is ahead of that of the first one, and how well that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    pub(super) ns: i64,
    /// `None` if the wall clocks are trusted: nothing says how far they differ.
    pub(super) uncertainty_ns: Option<i64>,
    /// The collectives that it was derived from.
    pub(super) pairs: usize,
}

/// Returns the collectives of a rank with one name, in the order of their ends. Collectives on GPUs have their own times
/// there; the call on the CPU may return before.
pub(super) fn arrivals(timeline: &Timeline, name: &str) -> Vec<Arrival> {
    let named = |index: u32| {
        let name_of_slice = timeline.names.get(index as usize);
        name_of_slice.is_some_and(|other| *other.text == *name)
    };
    let of_kind = |is_of_gpu: bool| -> Vec<Arrival> {
        let slices = timeline.slices.iter();
        let slices = slices.filter(|slice| {
            is_gpu(slice.kind) == is_of_gpu
                && slice.kind != SliceKind::FuturePoll
                && named(slice.name)
        });
        let mut arrivals: Vec<Arrival> = slices
            .map(|slice| {
                let start = timeline.start_unix_ns.saturating_add(slice.start_ns);
                Arrival {
                    start,
                    end: start.saturating_add(slice.duration_ns),
                }
            })
            .collect();
        arrivals.sort_by_key(|arrival| (arrival.end, arrival.start));
        arrivals
    };
    let on_gpu = of_kind(true);
    if on_gpu.is_empty() {
        of_kind(false)
    } else {
        on_gpu
    }
}

fn is_gpu(kind: SliceKind) -> bool {
    matches!(kind, SliceKind::GpuScope | SliceKind::GpuWork)
}

/// Returns the names of the collectives that all ranks have. `wanted` replaces the list of known ones.
pub(super) fn collectives(ranks: &[&Timeline], wanted: Option<&str>) -> Vec<String> {
    let plain = |text: &str| text.to_lowercase().replace('_', "");
    let is_collective = |name: &str| {
        let name = plain(name);
        match wanted {
            Some(wanted) => name.contains(&plain(wanted)),
            None => COLLECTIVES.iter().any(|known| name.contains(known)),
        }
    };
    let Some((first, others)) = ranks.split_first() else {
        return Vec::new();
    };
    let has = |rank: &Timeline, name: &str| rank.names.iter().any(|other| *other.text == *name);
    let names = first.names.iter().map(|name| name.text.to_string());
    let mut common: Vec<String> = names
        .filter(|name| is_collective(name) && others.iter().all(|rank| has(rank, name)))
        .collect();
    common.sort();
    common.dedup();
    common
}

/// Returns pairs of indices into `here` and `there` that are the same collective.
///
/// If both have equally many, they are paired in order. Otherwise one of them misses some at its ends: then each is paired
/// with the nearest one of the other, if that is closer than half the shortest time between two.
pub(super) fn pairs(here: &[Arrival], there: &[Arrival]) -> Vec<(usize, usize)> {
    if here.len() == there.len() {
        return (0..here.len()).map(|index| (index, index)).collect();
    }
    let gaps = |arrivals: &[Arrival]| {
        let gaps = arrivals.windows(2).map(|pair| pair[1].end - pair[0].end);
        gaps.min().unwrap_or(i64::MAX)
    };
    let limit = gaps(here).min(gaps(there)) / 2;
    let nearest = |arrival: &Arrival| {
        let after = there.partition_point(|other| other.end < arrival.end);
        let near = [after.checked_sub(1), Some(after)].into_iter().flatten();
        let distance = |index: &usize| (there[*index].end - arrival.end).abs();
        near.filter(|index| *index < there.len())
            .min_by_key(distance)
            .filter(|index| distance(index) < limit)
    };
    let paired = here.iter().enumerate();
    paired
        .filter_map(|(index, arrival)| Some((index, nearest(arrival)?)))
        .collect()
}

/// Returns how far the clock of `there` is ahead of that of `here`.
pub(super) fn offset(here: &Timeline, there: &Timeline, collectives: &[String]) -> Offset {
    let mut differences: Vec<i64> = Vec::new();
    for name in collectives {
        let (here, there) = (arrivals(here, name), arrivals(there, name));
        let pairs = pairs(&here, &there).into_iter();
        differences.extend(pairs.map(|(one, other)| there[other].end - here[one].end));
    }
    if differences.len() < MIN_PAIRS {
        return Offset {
            ns: 0,
            uncertainty_ns: None,
            pairs: differences.len(),
        };
    }
    let ns = median(&mut differences);
    let mut deviations: Vec<i64> = differences.iter().map(|other| (other - ns).abs()).collect();
    let deviation = median(&mut deviations) as f64 * DEVIATION;
    #[allow(clippy::cast_possible_truncation, reason = "the cast saturates")]
    let uncertainty = (deviation.ceil() as i64).max(LEAST_UNCERTAINTY_NS);
    Offset {
        ns,
        uncertainty_ns: Some(uncertainty),
        pairs: differences.len(),
    }
}

/// Returns the lower median; zero of nothing.
pub(super) fn median(values: &mut [i64]) -> i64 {
    values.sort_unstable();
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::made_up::Rank;
    use super::*;

    #[test]
    fn a_known_offset_is_found_within_its_uncertainty() {
        let here = Rank::new(0).steps(20);
        for ahead in [-3_000_000, 0, 42_000, 7_000_000_000] {
            let there = Rank::new(1).ahead(ahead).jitter(2_000).steps(20);
            let names = collectives(&[&here, &there], None);
            assert_eq!(names, ["ncclAllReduce"]);
            let found = offset(&here, &there, &names);
            let uncertainty = found.uncertainty_ns.expect("many collectives");
            assert!(
                (found.ns - ahead).abs() <= uncertainty.max(2_000),
                "{found:?} for {ahead}"
            );
            assert!(uncertainty <= 4_000 && found.pairs == 20, "{found:?}");
        }
    }

    #[test]
    fn a_rank_that_is_late_does_not_shift_its_clock() {
        let here = Rank::new(0).steps(20);
        let there = Rank::new(1).late(2_000_000).steps(20);
        let found = offset(&here, &there, &collectives(&[&here, &there], None));
        assert_eq!(found.ns, 0);
    }

    #[test]
    fn windows_that_begin_at_different_steps_are_paired_by_time() {
        let here = Rank::new(0).steps(20);
        let there = Rank::new(1).ahead(42_000).first_step(3).steps(10);
        let found = offset(&here, &there, &collectives(&[&here, &there], None));
        assert_eq!((found.ns, found.pairs), (42_000, 10));
    }

    #[test]
    fn without_collectives_the_wall_clocks_are_trusted() {
        let here = Rank::new(0).steps(2);
        let there = Rank::new(1).ahead(500).steps(2);
        let found = offset(&here, &there, &collectives(&[&here, &there], None));
        assert_eq!((found.ns, found.uncertainty_ns, found.pairs), (0, None, 2));
        assert!(collectives(&[&here, &there], Some("gather")).is_empty());
        assert_eq!(
            collectives(&[&here, &there], Some("train::")),
            ["train::step"]
        );
    }
}
