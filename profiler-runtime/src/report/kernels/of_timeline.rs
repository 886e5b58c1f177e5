//! The kernels of a time line.

use std::collections::HashMap;

use super::AllKernels;
use super::gather::{Item, gather};
use crate::gpu_work::GpuWorkKind;
use crate::report::timeline::{SliceKind, Timeline};
use crate::report::walk::NONE;

/// Returns the kernels of a time line whose averages have this many rows; `None` if it has none. `callers` are the calls
/// that slices belong to, `texts` the number of the text of each name.
pub(in crate::report) fn of_timeline(
    timeline: &Timeline,
    callers: &[u32],
    texts: &[u32],
    rows: usize,
) -> Option<AllKernels> {
    let slices = &timeline.slices;
    let is_work = |kind| kind == SliceKind::GpuWork;
    if !slices.iter().any(|slice| is_work(slice.kind)) {
        return None;
    }
    let text_of = |name: u32| texts.get(name as usize).copied().unwrap_or(NONE);
    let mut calls: HashMap<u32, u64> = HashMap::new();
    for slice in slices {
        if matches!(slice.kind, SliceKind::Call | SliceKind::AsyncCall) {
            *calls.entry(text_of(slice.name)).or_default() += 1;
        }
    }
    // One file may be that of several processes, each with devices of its own.
    let mut devices: HashMap<_, u32> = HashMap::new();
    let mut device_of = |track: u32| {
        let track = timeline.tracks.get(track as usize);
        let device = track.map(|track| (track.process, track.rank, track.device));
        let next = u32::try_from(devices.len()).unwrap_or(NONE);
        *devices.entry(device).or_insert(next)
    };
    let mut items = Vec::new();
    for (slice, caller) in slices.iter().zip(callers) {
        let work = slice.work.and_then(|work| timeline.work.get(work as usize));
        let kind = work.map(|work| work.kind);
        if !is_work(slice.kind) || matches!(kind, Some(GpuWorkKind::Synchronization(_))) {
            continue;
        }
        let name = timeline.names.get(slice.name as usize);
        let call = slices.get(*caller as usize);
        let launch = slice.launch;
        let launch = launch.and_then(|index| Some((index, timeline.launches.get(index as usize)?)));
        items.push(Item {
            name: name.map_or("(unknown)", |name| &name.text),
            span: (
                slice.start_ns,
                slice.start_ns.saturating_add(slice.duration_ns.max(0)),
            ),
            device: device_of(slice.track),
            kind,
            scope: call.map_or(NONE, |call| text_of(call.name)),
            call_start: call.map_or(i64::MIN, |call| call.start_ns),
            is_counted: true,
            launch: launch
                .map(|(index, launch)| (index, launch.start_ns.saturating_add(launch.duration_ns))),
        });
    }
    let has_launches = !timeline.launches.is_empty();
    let kernels = gather(items, has_launches, |name| {
        let text = timeline.names.get(name as usize);
        let text = text.map_or_else(String::new, |name| name.text.to_string());
        (text, calls.get(&name).copied().unwrap_or_default())
    });
    Some(AllKernels { kernels, rows })
}
