//! What a device worked on.

use std::collections::{BTreeMap, HashMap};

use super::account::{DeviceKey, device_key};
use super::charged::Charged;
use super::segments::{LATE_NS, union};
use super::{DeviceSegment, DeviceState};
use crate::in_order::InOrder as _;
use crate::timeline::Timeline;
use crate::well_known::is_collective;

/// A kernel, copy or fill, and the function that launched it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongestWork {
    /// The name of the kernel, copy or fill.
    pub name: String,
    /// The innermost function around its launches; `None` if there was none.
    pub function: Option<String>,
    /// The source location of the function as `file:line`; empty if it is not known.
    pub location: String,
    /// How long it ran, in nanoseconds, all runs added up.
    pub ns: i64,
}

/// What is known of the work of a device beside its states.
#[derive(Default)]
pub(super) struct Works {
    /// The time of each kernel, copy or fill in each function, by the numbers of their texts.
    times: HashMap<(u32, u32), i64>,
    /// For each stream, when work had been launched, began and ended.
    streams: HashMap<u64, Vec<(i64, i64, i64)>>,
}

/// Returns the work of each device.
pub(super) fn of(timeline: &Timeline, charged: &Charged<'_>) -> BTreeMap<DeviceKey, Works> {
    let mut devices: BTreeMap<DeviceKey, Works> = BTreeMap::new();
    for (index, slice) in (0..).zip(&timeline.slices) {
        let track = timeline.tracks.get(slice.track as usize);
        let Some(track) = track.filter(|_| timeline.is_work(slice)) else {
            continue;
        };
        let works = devices.entry(device_key(track)).or_default();
        let function = charged.text_of(charged.caller(index));
        let time = works
            .times
            .entry((charged.text_of(index), function))
            .or_default();
        *time = time.saturating_add(slice.duration_ns.max(0));
        let launch = slice
            .launch
            .and_then(|launch| timeline.launches.get(launch as usize));
        if let Some(launch) = launch {
            let launched = launch.start_ns.saturating_add(launch.duration_ns.max(0));
            let end = slice.start_ns.saturating_add(slice.duration_ns.max(0));
            let stream = works.streams.entry(track.id).or_default();
            stream.push((slice.start_ns, end, launched));
        }
    }
    devices
}

impl Works {
    /// Returns the kernel, copy or fill that took longest in one function.
    pub(super) fn longest(&self, charged: &Charged<'_>) -> Option<LongestWork> {
        let longest = self
            .times
            .iter()
            .max_by_key(|(texts, ns)| (**ns, std::cmp::Reverse(**texts)));
        let ((name, function), ns) = longest?;
        let function = charged.name(*function);
        Some(LongestWork {
            name: charged.name(*name)?.0.to_owned(),
            function: function.map(|(name, _)| name.to_owned()),
            location: function.map_or("", |(_, location)| location).to_owned(),
            ns: *ns,
        })
    }

    /// Returns how long kernels ran by which processes wait for each other.
    pub(super) fn collectives_ns(&self, charged: &Charged<'_>) -> i64 {
        let of_name = |name: u32| {
            charged
                .name(name)
                .is_some_and(|(name, _)| is_collective(name))
        };
        let times = self.times.iter();
        let times = times.filter(|((name, _), _)| of_name(*name));
        times.fold(0, |sum: i64, (_, ns)| sum.saturating_add(*ns))
    }

    /// Returns how long the device was busy while launched work of another stream waited, which had nothing before it on its own.
    pub(super) fn blocked_ns(self, segments: &[DeviceSegment]) -> i64 {
        if self.streams.len() < 2 {
            return 0;
        }
        let mut waits = Vec::new();
        for mut works in self.streams.into_values() {
            works.order();
            let mut until = i64::MIN;
            for (start, end, launched) in works {
                let from = launched.max(until);
                if start.saturating_sub(from) >= LATE_NS {
                    waits.push((from, start));
                }
                until = until.max(end);
            }
        }
        waits.order();
        let mut blocked = Vec::new();
        let mut until = i64::MIN;
        for (from, to) in waits {
            let from = until.max(from);
            until = until.max(to);
            let first = segments.partition_point(|segment| segment.end_ns <= from);
            let inside = segments[first..]
                .iter()
                .take_while(|segment| segment.start_ns < to);
            for segment in inside.filter(|segment| segment.state == DeviceState::Busy) {
                blocked.push((0, segment.start_ns.max(from), segment.end_ns.min(to)));
            }
        }
        union(blocked)
    }
}
