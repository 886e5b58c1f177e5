//! What other tools record of a device, and cannot be all or cannot be right.

use std::collections::HashSet;

use profiler_report::KernelGap;
use profiler_report::internal::InOrder as _;

use super::collect::Collector;
use super::launches::Callers;
use super::nesting::NONE;
use super::raw::{Raw, RawKind};

/// The calls that launch a graph, by the beginnings of their names.
const GRAPH_LAUNCHES: [&str; 3] = ["cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"];

/// Why a device may have worked after the launch of a graph.
const GRAPH_WITHOUT_WORK: &str = "the file has no work of a graph that was launched";

/// Adds a gap for each launch of a graph that has no work in the file, up to the next such launch or to the work that was launched
/// later: nobody knows whether the device was idle then.
pub(super) fn add_graph_gaps(collector: &mut Collector, callers: &Callers) {
    let raws = &collector.raws;
    let with_work: HashSet<u32> = callers
        .launches
        .iter()
        .copied()
        .filter(|launch| *launch != NONE)
        .collect();
    if with_work.is_empty() {
        return;
    }
    let is_graph = |raw: &Raw| {
        let name = collector.names.text(raw.name).unwrap_or_default();
        raw.kind == RawKind::Launch && GRAPH_LAUNCHES.iter().any(|call| name.starts_with(call))
    };
    let without_work: Vec<&Raw> = (0..)
        .zip(raws)
        .filter(|(index, raw)| is_graph(raw) && !with_work.contains(index))
        .map(|(_, raw)| raw)
        .collect();
    if without_work.is_empty() {
        return;
    }
    // When the work of each rank was launched and began, in the order of the launches; then when the first of it and of all that was
    // launched later began.
    let rank = |raw: &Raw| collector.tracks.rank(raw.track).or(collector.job.rank);
    let of_work = raws
        .iter()
        .zip(&callers.launches)
        .filter_map(|(work, launch)| {
            let launch = raws.get(*launch as usize)?;
            Some((rank(launch), launch.start, work.start))
        });
    let mut begins: Vec<_> = of_work.collect();
    begins.order();
    for at in (1..begins.len()).rev() {
        let (rank, _, begin) = begins[at];
        let before = &mut begins[at - 1];
        if before.0 == rank {
            before.2 = before.2.min(begin);
        }
    }
    let end = raws.iter().map(|raw| raw.end).max().unwrap_or_default();
    let gaps = without_work.into_iter().map(|launch| {
        let rank = rank(launch);
        let next = begins.partition_point(|begin| (begin.0, begin.1) <= (rank, launch.start));
        let next = begins.get(next).filter(|begin| begin.0 == rank);
        let until = next.map_or(end, |begin| begin.2);
        KernelGap {
            rank,
            start_ns: launch.start,
            duration_ns: until.saturating_sub(launch.start).max(0),
            reason: GRAPH_WITHOUT_WORK.into(),
            ..KernelGap::default()
        }
    });
    let mut gaps: Vec<KernelGap> = gaps.collect();
    gaps.order_by_key(|gap| (gap.rank, gap.start_ns));
    // Each lasts up to the next launch without work.
    for at in 1..gaps.len() {
        let (before, next) = gaps.split_at_mut(at);
        if let (Some(gap), Some(next)) = (before.last_mut(), next.first())
            && gap.rank == next.rank
        {
            gap.duration_ns = gap
                .duration_ns
                .min(next.start_ns.saturating_sub(gap.start_ns));
        }
    }
    let reason = "launches of graphs have no work in the file: whether the device was idle after them is not known";
    collector
        .missing
        .insert(reason.to_owned(), gaps.len() as u64);
    collector.kernel_gaps.extend(gaps);
}

/// Says of work that takes longer than all else in the file, while its stream goes on, that its time is probably wrong. Work that
/// overlaps a little on one stream is usual.
pub(super) fn doubt_endless_work(collector: &mut Collector) {
    let raws = &collector.raws;
    let length = |raw: &Raw| raw.end.saturating_sub(raw.start);
    let works = (0..)
        .zip(raws)
        .filter(|(_, raw)| raw.kind == RawKind::GpuWork);
    let Some((longest, work)) = works.max_by_key(|(_, raw)| length(raw)) else {
        return;
    };
    let others = || {
        (0..)
            .zip(raws)
            .filter(|(index, _)| *index != longest)
            .map(|(_, raw)| raw)
    };
    let (Some(first), Some(last)) = (
        others().map(|raw| raw.start).min(),
        others().map(|raw| raw.end).max(),
    ) else {
        return;
    };
    let goes_on = others().any(|raw| {
        raw.kind == RawKind::GpuWork
            && raw.track == work.track
            && (work.start..work.end).contains(&raw.start)
    });
    if goes_on && length(work) > last.saturating_sub(first) {
        let name = collector.names.text(work.name).unwrap_or_default();
        let reason = format!(
            "work, `{name}`, takes longer than all else in the file, while its stream goes on: its time is probably wrong"
        );
        collector.missing.insert(reason, 1);
    }
}
