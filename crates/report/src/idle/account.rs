//! Adding up the states of a device.

use std::collections::{BTreeMap, HashMap};

use super::gaps::Gaps;
use super::segments::{Piece, Work, segments, union};
use super::shown;
use super::threads::Threads;
use super::verdict::is_step;
use super::why::{self, WaitCalls};
use super::works;
use super::{
    BusyTime, DeviceFunction, DeviceIdle, DeviceSegment, DeviceState, GpuIdle, IdleCharge,
};
use crate::call_tree;
use crate::gpu_work::GpuWorkKind;
use crate::timeline::{Timeline, Track};
use crate::walk::{NONE, Visit, Walk};

/// From this length on, a time in which work was launched and did not begin is not explained by the launch.
const UNEXPLAINED_NS: i64 = 10_000;

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

/// Returns the segments of each device that worked. `callers` are the calls that slices belong to.
pub(crate) fn segments_of<'t>(
    timeline: &'t Timeline,
    callers: &[u32],
) -> BTreeMap<DeviceKey, Device<'t>> {
    devices(timeline, callers).1
}

fn devices<'t>(
    timeline: &'t Timeline,
    callers: &[u32],
) -> (Threads, BTreeMap<DeviceKey, Device<'t>>) {
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
        return (Threads::default(), BTreeMap::new());
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
    let devices = devices.collect();
    (threads, devices)
}

pub(super) fn of_timeline(timeline: &Timeline) -> GpuIdle {
    let callers = call_tree::callers(timeline);
    let (threads, devices) = devices(timeline, &callers);
    if devices.is_empty() {
        return GpuIdle::default();
    }
    let charged = Charged::of(timeline, callers);
    let mut works = works::of(timeline, &charged);
    let waits = WaitCalls::of(timeline, &charged, &threads);
    let devices = devices.into_iter().map(|(key, device)| {
        let (track, pieces) = (device.track, device.pieces);
        let works = works.remove(&key).unwrap_or_default();
        let account = account(device.segments, &charged);
        DeviceIdle {
            rank: track.rank,
            device: track.device,
            device_name: track.device_name.clone(),
            copy_ns: account.busy_ns.saturating_sub(device.kernels_ns),
            longest_work: works.longest(&charged),
            collectives_ns: works.collectives_ns(&charged),
            blocked_ns: works.blocked_ns(&account.segments),
            drained: waits.drained(&pieces, &charged, &threads),
            named: why::of_named(&account, &pieces, &charged, &threads),
            ..account
        }
    });
    GpuIdle {
        devices: devices.collect(),
    }
}

/// Returns `true` for a time that is charged to a function, or to no function.
pub(super) fn is_charged(segment: &DeviceSegment) -> bool {
    let is_host = matches!(segment.state, DeviceState::Host | DeviceState::LaunchCall);
    is_host && !segment.is_before_first
}

pub(super) fn account(mut segments: Vec<DeviceSegment>, charged: &Charged<'_>) -> DeviceIdle {
    let mut device = DeviceIdle::default();
    // How long the next work has been launched: a time in which nothing was recorded may divide that.
    let mut launched = 0_i64;
    for segment in &segments {
        let length = segment.end_ns.saturating_sub(segment.start_ns);
        let sum = match segment.state {
            DeviceState::Busy => {
                if launched >= UNEXPLAINED_NS {
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
    }
    device.charges = charged.charges(segments.iter().filter(|segment| !segment.is_before_first));
    device.before_first =
        charged.charges(segments.iter().filter(|segment| segment.is_before_first));
    device.busy = charged.busy(&segments);
    device.functions = charged.functions(&mut segments);
    device.segments = segments;
    device
}

/// What is needed to charge times to functions: the forest of calls, and their names.
pub(super) struct Charged<'t> {
    timeline: &'t Timeline,
    callers: Vec<u32>,
    /// For each slice, the number of its name's text.
    texts: Vec<u32>,
    names: Vec<(&'t str, &'t str)>,
}

/// Idle time: all of it, and the part in launch calls.
#[derive(Clone, Copy, Default)]
struct Waited {
    all: i64,
    in_call: i64,
}

impl Waited {
    fn add(&mut self, other: Self) {
        self.all = self.all.saturating_add(other.all);
        self.in_call = self.in_call.saturating_add(other.in_call);
    }
}

/// The times of a function, and how many of its calls the walk is in.
#[derive(Clone, Copy, Default)]
struct Tally {
    own: Waited,
    inclusive: Waited,
    open: u32,
}

impl<'t> Charged<'t> {
    pub(super) fn of(timeline: &'t Timeline, callers: Vec<u32>) -> Self {
        let mut names: Vec<(&str, &str)> = Vec::new();
        let mut numbers = HashMap::new();
        let mut number_of = |name: u32| {
            let name = timeline.names.get(name as usize);
            let (text, location) =
                name.map_or(("(unknown)", ""), |name| (&*name.text, &*name.location));
            let number = *numbers.entry(text).or_insert_with(|| {
                names.push((text, location));
                names.len() - 1
            });
            // A name of several places has none.
            let known = &mut names[number].1;
            if *known != location {
                *known = "";
            }
            u32::try_from(number).unwrap_or(NONE)
        };
        let texts = timeline.slices.iter().map(|slice| number_of(slice.name));
        Self {
            texts: texts.collect(),
            timeline,
            callers,
            names,
        }
    }

    /// Returns the call around a slice, or [`NONE`].
    pub(super) fn caller(&self, slice: u32) -> u32 {
        self.callers.get(slice as usize).copied().unwrap_or(NONE)
    }

    /// Returns the number of the text of a slice; [`NONE`] for none.
    pub(super) fn text_of(&self, slice: u32) -> u32 {
        self.texts.get(slice as usize).copied().unwrap_or(NONE)
    }

    /// Returns the text of this number, and its location.
    pub(super) fn name(&self, text: u32) -> Option<(&'t str, &'t str)> {
        self.names.get(text as usize).copied()
    }

    /// Returns the number of a text.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        let place = self.names.iter().position(|(text, _)| *text == name)?;
        u32::try_from(place).ok()
    }

    /// Adds up the idle times of segments by function.
    fn charges<'s>(&self, segments: impl Iterator<Item = &'s DeviceSegment>) -> Vec<IdleCharge> {
        let mut outside = Tally::default();
        // The idle time of each call itself.
        let mut own: HashMap<u32, Waited> = HashMap::new();
        for segment in segments {
            let length = segment.end_ns.saturating_sub(segment.start_ns);
            let in_call = match segment.state {
                DeviceState::Host => 0,
                DeviceState::LaunchCall => length,
                _ => continue,
            };
            let waited = match segment.call {
                Some(call) => own.entry(call).or_default(),
                None => &mut outside.own,
            };
            waited.add(Waited {
                all: length,
                in_call,
            });
        }
        outside.inclusive = outside.own;
        let tallies = self.by_name(&own);
        let mut charges: Vec<IdleCharge> = tallies
            .into_iter()
            .map(|(text, tally)| {
                let (name, location) = self.names.get(text as usize).copied().unwrap_or_default();
                charge(Some(name), location, &tally)
            })
            .collect();
        if outside.own.all > 0 {
            charges.push(charge(None, "", &outside));
        }
        charges.sort_by(|one, other| {
            let longest = (other.inclusive_ns, other.idle_ns).cmp(&(one.inclusive_ns, one.idle_ns));
            longest.then_with(|| one.name.cmp(&other.name))
        });
        charges
    }

    /// Adds up the busy times of segments by function.
    fn busy(&self, segments: &[DeviceSegment]) -> Vec<BusyTime> {
        let mut own: HashMap<u32, Waited> = HashMap::new();
        let mut outside = 0_i64;
        for segment in segments {
            if segment.state != DeviceState::Busy {
                continue;
            }
            let sum = match segment.call {
                Some(call) => &mut own.entry(call).or_default().all,
                None => &mut outside,
            };
            *sum = sum.saturating_add(segment.end_ns.saturating_sub(segment.start_ns));
        }
        let tallies = self.by_name(&own).into_iter();
        let mut busy: Vec<BusyTime> = tallies
            .map(|(text, tally)| BusyTime {
                name: self
                    .names
                    .get(text as usize)
                    .map(|(name, _)| (*name).to_owned()),
                busy_ns: tally.own.all,
                inclusive_ns: tally.inclusive.all,
            })
            .collect();
        if outside > 0 {
            busy.push(BusyTime {
                name: None,
                busy_ns: outside,
                inclusive_ns: outside,
            });
        }
        busy.sort_by(|one, other| {
            let longest = (other.inclusive_ns, other.busy_ns).cmp(&(one.inclusive_ns, one.busy_ns));
            longest.then_with(|| one.name.cmp(&other.name))
        });
        busy
    }

    /// Chooses the functions that are shown apart.
    fn functions(&self, segments: &mut [DeviceSegment]) -> Vec<DeviceFunction> {
        let charged = segments
            .iter()
            .filter(|segment| shown::is_of_function(segment));
        let calls = charged.filter_map(|segment| segment.call);
        let visits: Vec<Visit> = self.walk(calls).collect();
        // A step is no function.
        let names = self.names.iter().map(|(name, location)| match name {
            name if is_step(name) => ("", *location),
            _ => (*name, *location),
        });
        let calls = shown::Calls {
            visits: &visits,
            functions: &self.texts,
            names: &names.collect::<Vec<_>>(),
        };
        shown::choose(segments, &calls)
    }

    /// Returns a walk through calls and those around them.
    fn walk(&self, calls: impl Iterator<Item = u32>) -> Walk {
        let mut is_charged = vec![false; self.timeline.slices.len()];
        for mut call in calls {
            while let Some(known @ false) = is_charged.get_mut(call as usize) {
                *known = true;
                call = self.callers.get(call as usize).copied().unwrap_or(NONE);
            }
        }
        Walk::new(&self.callers, |index| is_charged[index])
    }

    /// Adds the times of calls to those of their functions, and of the functions around them.
    fn by_name(&self, own: &HashMap<u32, Waited>) -> HashMap<u32, Tally> {
        let mut tallies: HashMap<u32, Tally> = HashMap::new();
        // The sums of the calls that the walk is in.
        let mut sums: Vec<Waited> = Vec::new();
        // Only calls with a charge below them matter.
        for visit in self.walk(own.keys().copied()) {
            match visit {
                Visit::Enter(index) => {
                    sums.push(Waited::default());
                    tallies.entry(self.texts[index]).or_default().open += 1;
                }
                Visit::Leave(index) => {
                    let call = u32::try_from(index).unwrap_or(NONE);
                    let own = own.get(&call).copied().unwrap_or_default();
                    let mut sum = sums.pop().unwrap_or_default();
                    sum.add(own);
                    if let Some(around) = sums.last_mut() {
                        around.add(sum);
                    }
                    let tally = tallies.entry(self.texts[index]).or_default();
                    tally.own.add(own);
                    tally.open -= 1;
                    // A call inside of one of the same function is in the time of that.
                    if tally.open == 0 {
                        tally.inclusive.add(sum);
                    }
                }
            }
        }
        tallies
    }
}

fn charge(name: Option<&str>, location: &str, tally: &Tally) -> IdleCharge {
    IdleCharge {
        name: name.map(str::to_owned),
        location: location.to_owned(),
        idle_ns: tally.own.all,
        in_call_ns: tally.own.in_call,
        inclusive_ns: tally.inclusive.all,
        inclusive_in_call_ns: tally.inclusive.in_call,
    }
}
