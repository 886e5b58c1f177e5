//! The kernels of a time line.

use std::collections::{HashMap, HashSet};

use super::Kernels;
use super::gather::{Item, gather};
use crate::idle::{Devices, Gaps, device_key};
use crate::timeline::{Slice, SliceKind, Timeline, not_recorded};
use crate::walk::NONE;

/// Returns the kernels of a time line; `None` if it has none, and it is not known why. `callers` are the calls that slices
/// belong to, `devices` what the devices did, `texts` the number of the text of each name, `notes` what a reader must know of how
/// they were recorded.
pub(crate) fn of_timeline(
    timeline: &Timeline,
    callers: &[u32],
    devices: &Devices<'_>,
    texts: &[u32],
    notes: &[String],
) -> Option<Kernels> {
    let slices = &timeline.slices;
    if !timeline.has_kernels && !slices.iter().any(|slice| slice.kind == SliceKind::GpuWork) {
        return (!notes.is_empty()).then(|| Kernels {
            notes: notes.to_vec(),
            ..Kernels::default()
        });
    }
    let gaps = Gaps::of(timeline);
    let rank_of = |track: u32| timeline.tracks.get(track as usize)?.rank;
    // The launches of a call are known if it began while they were recorded.
    let is_counted = |slice: &Slice| !gaps.contain(rank_of(slice.track), slice.start_ns);
    let text_of = |name: u32| texts.get(name as usize).copied().unwrap_or(NONE);
    let mut calls: HashMap<u32, u64> = HashMap::new();
    for slice in slices {
        if matches!(slice.kind, SliceKind::Call | SliceKind::AsyncCall) && is_counted(slice) {
            *calls.entry(text_of(slice.name)).or_default() += 1;
        }
    }
    let (numbers, devices): (HashMap<_, u32>, Vec<_>) = (0..)
        .zip(devices.segments())
        .map(|(number, (key, segments))| ((key, number), segments))
        .unzip();
    let device_of = |track: u32| {
        let track = timeline.tracks.get(track as usize);
        let number = track.and_then(|track| numbers.get(&device_key(track)));
        number.copied().unwrap_or(NONE)
    };
    let mut items = Vec::new();
    for (slice, caller) in slices.iter().zip(callers) {
        let work = slice.work.and_then(|work| timeline.work.get(work as usize));
        let kind = work.map(|work| work.kind);
        if !timeline.is_work(slice) {
            continue;
        }
        let name = timeline.names.get(slice.name as usize);
        let call = slices.get(*caller as usize);
        let launches = timeline.launches.len();
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
            is_counted: call.is_none_or(is_counted),
            launch: slice.launch.filter(|index| (*index as usize) < launches),
        });
    }
    let has_launches = timeline.has_kernels || !timeline.launches.is_empty();
    let kernels = gather(items, has_launches, &devices, |name| {
        let text = timeline.names.get(name as usize);
        let text = text.map_or_else(String::new, |name| name.text.to_string());
        (text, calls.get(&name).copied().unwrap_or_default())
    });
    let lengths = timeline
        .kernel_gaps
        .iter()
        .map(|gap| gap.duration_ns as f64);
    let ranks: HashSet<Option<u64>> = timeline.tracks.iter().map(|track| track.rank).collect();
    Some(Kernels {
        unrecorded_ns: lengths.sum(),
        processes: ranks.len(),
        notes: about_gaps(timeline).chain(notes.iter().cloned()).collect(),
        ..kernels
    })
}

/// Returns a line for each reason why kernels were not recorded.
fn about_gaps(timeline: &Timeline) -> impl Iterator<Item = String> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut reasons: Vec<(&str, i64, usize)> = Vec::new();
    for gap in &timeline.kernel_gaps {
        let place = *places.entry(&gap.reason).or_insert(reasons.len());
        match reasons.get_mut(place) {
            Some((_, ns, gaps)) => {
                *ns = ns.saturating_add(gap.duration_ns);
                *gaps += 1;
            }
            None => reasons.push((&gap.reason, gap.duration_ns, 1)),
        }
    }
    let reasons = reasons.into_iter();
    reasons.map(|(reason, ns, gaps)| not_recorded(ns, gaps, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelGap;

    #[test]
    fn each_reason_for_missing_kernels_is_said_once() {
        let gap = |duration_ns, reason: &str| KernelGap {
            duration_ns,
            reason: reason.into(),
            ..KernelGap::default()
        };
        let timeline = Timeline {
            kernel_gaps: vec![gap(20_000, "off"), gap(7_000, "late"), gap(40_000, "off")],
            ..Timeline::default()
        };
        let expected = [
            "kernels, copies and fills were not recorded for 60.0 µs in all, 2 times: off",
            "kernels, copies and fills were not recorded for 7.00 µs: late",
        ];
        assert_eq!(about_gaps(&timeline).collect::<Vec<_>>(), expected);
        assert_eq!(timeline.kernel_gaps[1].to_string(), expected[1]);
    }
}
