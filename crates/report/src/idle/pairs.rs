//! What event pairs say of a device of which no kernels were recorded.

use std::collections::{BTreeMap, HashMap};

use super::account::{Charged, account, device_key};
use super::gaps::Gaps;
use super::segments::{Work, segments, union};
use super::threads::Threads;
use super::{DevicePairs, GpuPairs};
use crate::call_tree;
use crate::timeline::{Launch, SliceKind, Timeline, Track};
use crate::walk::NONE;

/// The time between the two events of a call.
#[derive(Clone, Copy)]
struct Pair {
    start: i64,
    end: i64,
    /// The slice, and its call; [`NONE`] for no call.
    slice: usize,
    call: u32,
}

pub(super) fn of_timeline(timeline: &Timeline) -> GpuPairs {
    let slices = &timeline.slices;
    let is = |kind| slices.iter().any(|slice| slice.kind == kind);
    if timeline.has_kernels || is(SliceKind::GpuWork) || !is(SliceKind::GpuScope) {
        return GpuPairs::default();
    }
    let callers = call_tree::callers(timeline);
    let mut has_inner = vec![false; slices.len()];
    let mut devices: BTreeMap<_, (&Track, Vec<Pair>, u64)> = BTreeMap::new();
    for (index, slice) in slices.iter().enumerate() {
        let track = timeline.tracks.get(slice.track as usize);
        let Some(track) = track.filter(|_| slice.kind == SliceKind::GpuScope) else {
            continue;
        };
        let call = callers[index];
        let around = |call: u32| callers.get(call as usize).copied().unwrap_or(NONE);
        let mut outer = around(call);
        while let Some(known @ false) = has_inner.get_mut(outer as usize) {
            *known = true;
            outer = around(outer);
        }
        let device = devices.entry(device_key(track));
        let (_, pairs, unplaced) = device.or_insert_with(|| (track, Vec::new(), 0));
        if slice.is_placed() {
            pairs.push(Pair {
                start: slice.start_ns,
                end: slice.start_ns.saturating_add(slice.duration_ns.max(0)),
                slice: index,
                call,
            });
        } else {
            *unplaced += 1;
        }
    }
    let threads = Threads::of(timeline, &callers);
    let gaps = Gaps::default();
    let charged = Charged::of(timeline, callers);
    let devices = devices.into_values().map(|(track, mut pairs, unplaced)| {
        pairs.retain(|pair| pair.start < pair.end);
        let all = || pairs.iter();
        let begin = all().map(|pair| pair.start).min().unwrap_or(0).min(0);
        let end = all().map(|pair| pair.end).max().unwrap_or(0);
        let window = (begin, end.max(timeline.duration_ns));
        // The work of a call that returned earlier than its pair ended kept the device busy, unless other pairs were inside.
        let is_busy = |pair: &&Pair| {
            let call = slices.get(pair.call as usize);
            call.is_some_and(|call| call.duration_ns < slices[pair.slice].total_ns())
                && !has_inner[pair.call as usize]
        };
        let span = |pair: &Pair| (0, pair.start, pair.end);
        let busy_ns = union(all().filter(is_busy).map(span).collect());
        let in_pairs = union(all().map(span).collect());
        let mut paced: HashMap<&str, i64> = HashMap::new();
        for pair in all().filter(|pair| !is_busy(pair)) {
            let slice = &slices[pair.slice];
            let name = timeline.names.get(slice.name as usize);
            let name = name.map_or("(unknown)", |name| &*name.text);
            let ns = paced.entry(name).or_default();
            *ns = ns.saturating_add(slice.self_ns.max(0));
        }
        let paced = paced.into_iter();
        let longest = paced.max_by_key(|(name, ns)| (*ns, std::cmp::Reverse(*name)));
        // An event is recorded as its call begins.
        let launches: Vec<Option<Launch>> = all()
            .map(|pair| {
                let call = slices.get(pair.call as usize)?;
                Some(Launch {
                    track: call.track,
                    start_ns: call.start_ns,
                    ..Launch::default()
                })
            })
            .collect();
        let works = all().zip(&launches).map(|(pair, launch)| Work {
            start: pair.start,
            end: pair.end,
            launch: launch.as_ref(),
            is_kernel: true,
        });
        let segments = segments(works.collect(), window, gaps.of_rank(None), &threads);
        DevicePairs {
            rank: track.rank,
            device: track.device,
            device_name: track.device_name.clone(),
            busy_ns,
            host_paced_ns: in_pairs.saturating_sub(busy_ns),
            idle_ns: window.1.saturating_sub(window.0).saturating_sub(in_pairs),
            longest_paced: longest
                .filter(|(_, ns)| *ns > 0)
                .map(|(name, _)| name.to_owned()),
            unplaced,
            account: account(segments, &charged),
        }
    });
    GpuPairs {
        devices: devices.collect(),
    }
}
