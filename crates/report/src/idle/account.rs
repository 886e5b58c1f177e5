//! Adding up the states of a device.

use std::collections::BTreeMap;

use super::charged::{Charged, Forest, Times};
use super::gaps::Gaps;
use super::processor::Processors;
use super::segments::{LATE_NS, Piece, Work, segments, union};
use super::threads::Threads;
use super::why::{self, WaitCalls};
use super::works;
use super::{DeviceIdle, DeviceSegment, DeviceState, GpuIdle};
use crate::call_tree;
use crate::gpu_work::GpuWorkKind;
use crate::timeline::{Timeline, Track};
use crate::walk::NONE;

/// A device of one process. One file may be that of several processes, each with devices of its own.
pub(super) type DeviceKey = (Option<u64>, u64, Option<u32>);

pub(crate) fn device_key(track: &Track) -> DeviceKey {
    (track.rank, track.process, track.device)
}

/// What a device did over time.
pub(crate) struct Device<'t> {
    /// One of its streams.
    pub(crate) track: &'t Track,
    /// How long kernels ran.
    pub(super) kernels_ns: i64,
    pub(crate) segments: Vec<DeviceSegment>,
    pieces: Vec<Piece>,
}

/// The devices that worked in a window, and the threads that launched for them.
#[derive(Default)]
pub(crate) struct Devices<'t> {
    threads: Threads,
    devices: BTreeMap<DeviceKey, Device<'t>>,
}

/// Returns the segments of each device that worked. `callers` are the calls that slices belong to.
pub(crate) fn devices<'t>(timeline: &'t Timeline, callers: &[u32]) -> Devices<'t> {
    let mut works: BTreeMap<DeviceKey, (&Track, Vec<Work<'_>>)> = BTreeMap::new();
    for (slice, caller) in timeline.slices.iter().zip(callers) {
        let work = slice.work.and_then(|work| timeline.work.get(work as usize));
        let Some(track) = timeline.tracks.get(slice.track as usize) else {
            continue;
        };
        if !timeline.is_work(slice) || slice.duration_ns <= 0 {
            continue;
        }
        let of_device = works.entry(device_key(track));
        let (_, works) = of_device.or_insert_with(|| (track, Vec::new()));
        let kind = work.map(|work| work.kind);
        works.push(Work {
            is_kernel: !matches!(kind, Some(GpuWorkKind::Memcpy(_) | GpuWorkKind::Memset(_))),
            start: slice.start_ns,
            end: slice.start_ns.saturating_add(slice.duration_ns),
            call: Some(*caller).filter(|caller| *caller != NONE),
            launch: slice
                .launch
                .and_then(|launch| timeline.launches.get(launch as usize)),
        });
    }
    if works.is_empty() {
        return Devices::default();
    }
    let threads = Threads::of(timeline, callers);
    let gaps = Gaps::of(timeline);
    // Times of some files begin before zero.
    let all = || works.values().flat_map(|(_, works)| works);
    let begin = all().map(|work| work.start).min().unwrap_or(0).min(0);
    let end = all().map(|work| work.end).max().unwrap_or(0);
    let window = (begin, end.max(timeline.duration_ns));
    let devices = works.into_iter().map(|(key, (track, works))| {
        let kernels = works.iter().filter(|work| work.is_kernel);
        let kernels = kernels.map(|work| (0, work.start, work.end));
        let kernels_ns = union(kernels.collect());
        let cut = segments(works, window, gaps.of_rank(track.rank), &threads);
        let device = Device {
            track,
            kernels_ns,
            segments: cut.segments,
            pieces: cut.pieces,
        };
        (key, device)
    });
    Devices {
        devices: devices.collect(),
        threads,
    }
}

impl Devices<'_> {
    /// Returns the segments of each device.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (DeviceKey, &[DeviceSegment])> {
        let devices = self.devices.iter();
        devices.map(|(key, device)| (*key, &*device.segments))
    }

    /// Returns the devices.
    #[cfg(feature = "export")]
    pub(crate) fn each(&self) -> impl Iterator<Item = &Device<'_>> {
        self.devices.values()
    }

    /// Returns the account without what only pictures and sentences need.
    pub(crate) fn sums(&self, timeline: &Timeline, callers: &[u32]) -> GpuIdle {
        if self.devices.is_empty() {
            return GpuIdle::default();
        }
        let charged = Charged::of(timeline, callers);
        let mut seen = Vec::new();
        let devices = self.devices.values();
        GpuIdle {
            devices: devices
                .map(|device| {
                    let forest = charged.forest(&device.segments, &mut seen);
                    sums(&device.segments, &charged, &forest).0
                })
                .collect(),
        }
    }

    /// Returns the whole account.
    pub(crate) fn idle(self, timeline: &Timeline, callers: &[u32]) -> GpuIdle {
        let Self { threads, devices } = self;
        if devices.is_empty() {
            return GpuIdle::default();
        }
        let charged = Charged::of(timeline, callers);
        let mut works = works::of(timeline, &charged);
        let processors = Processors::of(timeline, &threads);
        let waits = WaitCalls::of(timeline, &charged, &threads);
        let mut seen = Vec::new();
        let devices = devices.into_iter().map(|(key, device)| {
            let (track, pieces) = (device.track, device.pieces);
            let works = works.remove(&key).unwrap_or_default();
            let account = account(device.segments, &charged, &mut seen);
            DeviceIdle {
                rank: track.rank,
                device: track.device,
                device_name: track.device_name.clone(),
                copy_ns: account.busy_ns.saturating_sub(device.kernels_ns),
                longest_work: works.longest(&charged),
                collectives_ns: works.collectives_ns(&charged),
                blocked_ns: works.blocked_ns(&account.segments),
                drained: waits.drained(&pieces, &charged, &threads),
                named: why::of_named(&account, &pieces, &charged, &threads, &processors),
                ..account
            }
        });
        GpuIdle {
            devices: devices.collect(),
        }
    }
}

pub(super) fn of_timeline(timeline: &Timeline) -> GpuIdle {
    let mut slices = timeline.slices.iter();
    if !slices.any(|slice| timeline.is_work(slice)) {
        return GpuIdle::default();
    }
    let callers = call_tree::callers(timeline);
    devices(timeline, &callers).idle(timeline, &callers)
}

/// Returns `true` for a time that is charged to a function, or to no function.
pub(super) fn is_charged(segment: &DeviceSegment) -> bool {
    let is_host = matches!(segment.state, DeviceState::Host | DeviceState::LaunchCall);
    is_host && !segment.is_before_first
}

/// Adds up a device's states, and the times of functions. Returns the times of paths too.
pub(super) fn sums(
    segments: &[DeviceSegment],
    charged: &Charged<'_>,
    forest: &Forest<'_>,
) -> (DeviceIdle, Times) {
    let mut device = DeviceIdle::default();
    let mut times = Times::none(forest);
    // How long the next work has been launched: a time in which nothing was recorded may divide that.
    let mut launched = 0_i64;
    for segment in segments {
        let length = segment.end_ns.saturating_sub(segment.start_ns);
        let sum = match segment.state {
            DeviceState::Busy => {
                if launched >= LATE_NS {
                    device.unexplained_ns = device.unexplained_ns.saturating_add(launched);
                }
                launched = 0;
                &mut device.busy_ns
            }
            DeviceState::NotRecorded => &mut device.not_recorded_ns,
            DeviceState::AfterLast => &mut device.after_last_ns,
            _ if segment.is_before_first => &mut device.before_first_ns,
            DeviceState::Host => &mut device.host_ns,
            DeviceState::LaunchCall => &mut device.in_call_ns,
            DeviceState::Launched => {
                launched = launched.saturating_add(length);
                &mut device.launched_ns
            }
        };
        *sum = sum.saturating_add(length);
        times.add(forest, segment);
    }
    device.charges = charged.charges(forest, &times, |path| path.idle);
    device.busy = charged.busy(forest, &times);
    (device, times)
}

/// Returns the sums, and what sentences and pictures have beside them.
fn account(
    mut segments: Vec<DeviceSegment>,
    charged: &Charged<'_>,
    seen: &mut Vec<bool>,
) -> DeviceIdle {
    let forest = charged.forest(&segments, seen);
    let (sums, times) = sums(&segments, charged, &forest);
    DeviceIdle {
        before_first: charged.charges(&forest, &times, |path| path.before_first),
        functions: charged.functions(&forest, &times, &mut segments),
        segments,
        ..sums
    }
}
