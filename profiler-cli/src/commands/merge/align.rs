//! The clocks of the ranks against each other.
//!
//! The wall clocks of machines differ. A collective ends on all ranks at nearly one time, because it needs all of them, so
//! the differences of its ends are those of the clocks, up to its own latency. The median over many collectives removes
//! single late ends, and the spread around it is the uncertainty.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use profiler_report::internal::{InOrder as _, is_collective};
use profiler_report::{SliceKind, Timeline};

/// The fewest common collectives from which the difference of two clocks is concluded.
const MIN_PAIRS: usize = 3;
/// No alignment is claimed to be more exact: the latency of a collective differs between ranks by about as much.
const LEAST_UNCERTAINTY_NS: i64 = 1_000;
/// The standard deviation of a normal distribution over its median absolute deviation.
const DEVIATION: f64 = 1.4826;

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

/// The clocks of ranks, and their collectives.
pub(super) struct Aligned {
    pub(super) offsets: Vec<Offset>,
    /// For each rank, its collectives by the clock of the first one.
    pub(super) arrivals: Vec<Arrivals>,
}

/// The collectives of a rank: for each name that all ranks have, those of that name in the order of their ends.
pub(super) type Arrivals = Vec<Vec<Arrival>>;

/// Aligns the clocks of ranks with that of the first one. `wanted` replaces the list of known collectives.
pub(super) fn align(ranks: &[&Timeline], wanted: Option<&str>) -> Aligned {
    let names = collectives(ranks, wanted);
    let mut arrivals: Vec<Arrivals> = ranks.iter().map(|rank| arrivals(rank, &names)).collect();
    let first = arrivals.first().map_or(&[][..], Vec::as_slice);
    let offsets: Vec<Offset> = arrivals.iter().map(|rank| offset(first, rank)).collect();
    for (rank, offset) in arrivals.iter_mut().zip(&offsets) {
        for arrival in rank.iter_mut().flatten() {
            arrival.start = arrival.start.saturating_sub(offset.ns);
            arrival.end = arrival.end.saturating_sub(offset.ns);
        }
    }
    Aligned { offsets, arrivals }
}

/// Returns the collectives of a rank with each of these names. Collectives on GPUs have their own times there; the call
/// on the CPU may return before.
fn arrivals(timeline: &Timeline, names: &[Arc<str>]) -> Arrivals {
    let places: HashMap<&str, usize> = names.iter().map(|name| &**name).zip(0..).collect();
    let of_names = timeline.names.iter();
    let of_names: Vec<Option<usize>> = of_names
        .map(|name| places.get(&*name.text).copied())
        .collect();
    let mut calls = vec![Vec::new(); names.len()];
    let mut on_gpu = calls.clone();
    for slice in &timeline.slices {
        let place = of_names.get(slice.name as usize).copied().flatten();
        let Some(place) = place.filter(|_| slice.kind != SliceKind::FuturePoll) else {
            continue;
        };
        let start = timeline.start_unix_ns.saturating_add(slice.start_ns);
        let end = start.saturating_add(slice.duration_ns);
        let arrivals = if slice.kind.is_on_gpu() {
            &mut on_gpu
        } else {
            &mut calls
        };
        arrivals[place].push(Arrival { start, end });
    }
    let both = on_gpu.into_iter().zip(calls);
    both.map(|(on_gpu, calls)| {
        let mut arrivals = if on_gpu.is_empty() { calls } else { on_gpu };
        arrivals.order_by_key(|arrival| (arrival.end, arrival.start));
        arrivals
    })
    .collect()
}

/// Returns the names of the collectives that all ranks have. `wanted` replaces the list of known ones.
fn collectives(ranks: &[&Timeline], wanted: Option<&str>) -> Vec<Arc<str>> {
    let plain = |text: &str| text.to_lowercase().replace('_', "");
    let is_collective = |name: &str| match wanted {
        Some(wanted) => plain(name).contains(&plain(wanted)),
        None => is_collective(name),
    };
    let Some((first, others)) = ranks.split_first() else {
        return Vec::new();
    };
    let names = |rank: &Timeline| -> HashSet<Arc<str>> {
        let names = rank.names.iter().map(|name| name.text.clone());
        names.collect()
    };
    let mut common = names(first);
    common.retain(|name| is_collective(name));
    for rank in others {
        let others = names(rank);
        common.retain(|name| others.contains(name));
    }
    let mut common: Vec<Arc<str>> = common.into_iter().collect();
    common.order();
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
fn offset(here: &[Vec<Arrival>], there: &[Vec<Arrival>]) -> Offset {
    let mut differences: Vec<i64> = Vec::new();
    for (here, there) in here.iter().zip(there) {
        let pairs = pairs(here, there).into_iter();
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
    values.order();
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {

    use profiler_report::{Slice, SliceName};

    use super::super::made_up::Rank;
    use super::*;

    fn offset_of(here: &Timeline, there: &Timeline) -> Offset {
        align(&[here, there], None).offsets[1]
    }

    #[test]
    fn a_known_offset_is_found_within_its_uncertainty() {
        let here = Rank::new(0).steps(20);
        for ahead in [-3_000_000, 0, 42_000, 7_000_000_000] {
            let there = Rank::new(1).ahead(ahead).jitter(2_000).steps(20);
            let names = collectives(&[&here, &there], None);
            assert_eq!(names, ["ncclAllReduce".into()]);
            let found = offset_of(&here, &there);
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
        let found = offset_of(&here, &there);
        assert_eq!(found.ns, 0);
    }

    #[test]
    fn windows_that_begin_at_different_steps_are_paired_by_time() {
        let here = Rank::new(0).steps(20);
        let there = Rank::new(1).ahead(42_000).first_step(3).steps(10);
        let found = offset_of(&here, &there);
        assert_eq!((found.ns, found.pairs), (42_000, 10));
    }

    #[test]
    fn without_collectives_the_wall_clocks_are_trusted() {
        let here = Rank::new(0).steps(2);
        let there = Rank::new(1).ahead(500).steps(2);
        let found = offset_of(&here, &there);
        assert_eq!((found.ns, found.uncertainty_ns, found.pairs), (0, None, 2));
        assert!(collectives(&[&here, &there], Some("gather")).is_empty());
        assert_eq!(
            collectives(&[&here, &there], Some("train::")),
            ["train::step".into()]
        );
    }

    #[test]
    fn many_names_of_collectives_are_each_a_pair() {
        const NAMES: u32 = 20_000;
        let ranks = [0, 1].map(|rank| {
            let mut line = Rank::new(rank).steps(0);
            for number in 0..NAMES {
                let name = SliceName {
                    text: format!("nccl {number}").into(),
                    ..SliceName::default()
                };
                line.names.push(name);
                let slice = Slice {
                    name: number + 2,
                    start_ns: i64::from(number) * 1_000,
                    ..Slice::default()
                };
                line.slices.push(slice);
            }
            line
        });
        // Looking at all slices for each name takes a minute.
        let aligned = align(&[&ranks[0], &ranks[1]], None);
        assert_eq!(aligned.offsets[1].pairs, NAMES as usize);
    }
}
