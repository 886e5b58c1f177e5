//! The account against the rules, and against a model that walks through each nanosecond.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{DeviceIdle, DeviceState, GpuIdle, IdleCharge};
use crate::gpu_work::GpuWork;
use crate::timeline::{
    KernelGap, Launch, ProcessorSample, ProcessorUse, Slice, SliceKind, SliceName, Timeline, Track,
    TrackKind,
};

/// A timeline that is written by hand, in microseconds.
#[derive(Default)]
pub(super) struct Drawn(pub(super) Timeline);

impl Drawn {
    pub(super) fn new(duration: i64) -> Self {
        let mut drawn = Self::default();
        drawn.0.duration_ns = duration * 1000;
        drawn.0.has_kernels = true;
        drawn
    }

    pub(super) fn track(&mut self, kind: TrackKind, id: u64, device: Option<u32>) -> u32 {
        let index = self.0.tracks.len();
        self.0.tracks.push(Track {
            kind,
            id,
            device,
            ..Track::default()
        });
        u32::try_from(index).expect("few")
    }

    pub(super) fn thread(&mut self, id: u64) -> u32 {
        self.track(TrackKind::HostThread, id, None)
    }

    pub(super) fn stream(&mut self, device: u32, id: u64) -> u32 {
        self.track(TrackKind::GpuStream, id, Some(device))
    }

    pub(super) fn name(&mut self, text: &str) -> u32 {
        let names = &mut self.0.names;
        let known = names.iter().position(|name| &*name.text == text);
        let index = known.unwrap_or_else(|| {
            names.push(SliceName {
                text: text.into(),
                ..SliceName::default()
            });
            names.len() - 1
        });
        u32::try_from(index).expect("few")
    }

    fn slice(&mut self, slice: Slice) -> u32 {
        self.0.slices.push(slice);
        u32::try_from(self.0.slices.len() - 1).expect("few")
    }

    pub(super) fn scope(
        &mut self,
        track: u32,
        name: &str,
        (from, to): (i64, i64),
        parent: Option<u32>,
    ) -> u32 {
        let name = self.name(name);
        self.slice(Slice {
            track,
            name,
            start_ns: from * 1000,
            duration_ns: (to - from) * 1000,
            parent,
            ..Slice::default()
        })
    }

    pub(super) fn launch(&mut self, track: u32, (from, to): (i64, i64)) -> u32 {
        let launches = &mut self.0.launches;
        let correlation = u32::try_from(launches.len()).expect("few");
        launches.push(Launch {
            track,
            start_ns: from * 1000,
            duration_ns: (to - from) * 1000,
            correlation,
            ..Launch::default()
        });
        correlation
    }

    pub(super) fn work(&mut self, track: u32, span: (i64, i64), launch: Option<u32>) {
        self.push_work(track, span, launch, None);
    }

    /// Adds work that a call launched.
    pub(super) fn work_of(&mut self, track: u32, span: (i64, i64), launch: Option<u32>, call: u32) {
        self.push_work(track, span, launch, Some(call));
    }

    fn push_work(
        &mut self,
        track: u32,
        (from, to): (i64, i64),
        launch: Option<u32>,
        parent: Option<u32>,
    ) {
        let work = u32::try_from(self.0.work.len()).expect("few");
        self.0.work.push(GpuWork::default());
        self.slice(Slice {
            track,
            kind: SliceKind::GpuWork,
            start_ns: from * 1000,
            duration_ns: (to - from) * 1000,
            work: Some(work),
            launch,
            parent,
            ..Slice::default()
        });
    }

    /// Notes for how long a thread had been on a processor, and ready for one, at some times.
    pub(super) fn processor(&mut self, track: u32, samples: &[(i64, i64, i64)]) {
        let samples = samples.iter().map(|(at, running, ready)| ProcessorSample {
            at_ns: at * 1000,
            running_ns: running * 1000,
            ready_ns: ready * 1000,
            ..ProcessorSample::default()
        });
        self.0.processor.push(ProcessorUse {
            track,
            samples: samples.collect(),
            ..ProcessorUse::default()
        });
    }

    /// The charges of the first device by name, in microseconds.
    fn charges(&self) -> Vec<(String, i64, i64)> {
        let device = &self.0.gpu_idle().devices[0];
        let mut charges: Vec<(String, i64, i64)> = device.charges.iter().map(charge).collect();
        charges.sort();
        charges
    }
}

fn charge(charge: &IdleCharge) -> (String, i64, i64) {
    let name = charge.name.as_deref().unwrap_or("outside");
    (
        name.to_owned(),
        charge.idle_ns / 1000,
        charge.inclusive_ns / 1000,
    )
}

fn expected(charges: &[(&str, i64, i64)]) -> Vec<(String, i64, i64)> {
    let charges = charges.iter();
    charges
        .map(|(name, own, inclusive)| ((*name).to_owned(), *own, *inclusive))
        .collect()
}

#[test]
fn a_piece_is_divided_in_time_among_the_scopes_of_the_thread_that_ended_it() {
    let mut drawn = Drawn::new(100);
    let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
    let forward = drawn.scope(main, "forward", (0, 90), None);
    drawn.scope(main, "load", (30, 60), Some(forward));
    let first = drawn.launch(main, (5, 8));
    let second = drawn.launch(main, (62, 65));
    drawn.work(stream, (10, 20), Some(first));
    drawn.work(stream, (70, 80), Some(second));
    let idle = drawn.0.gpu_idle();
    let device = &idle.devices[0];
    assert_eq!(device.host_ns, 42_000);
    assert_eq!((device.in_call_ns, device.launched_ns), (3_000, 5_000));
    assert_eq!(
        (device.before_first_ns, device.after_last_ns),
        (10_000, 20_000)
    );
    assert_eq!((device.busy_ns, device.window_ns()), (20_000, 100_000));
    assert_eq!(device.unexplained_ns, 0);
    assert_eq!(
        drawn.charges(),
        expected(&[("forward", 15, 45), ("load", 30, 30)])
    );
    let forward = device
        .charges
        .iter()
        .find(|charge| charge.name.as_deref() == Some("forward"));
    let forward = forward.expect("it is charged");
    assert_eq!(forward.in_call_ns, 3_000);
    // 70 µs from the first work to the last, 45 of them without it.
    assert!((device.bound_without(forward) - 70.0 / 25.0).abs() < 1e-9);
    assert_eq!(device.busy_share(), Some(20.0 / 70.0));
    let before: Vec<_> = device.before_first.iter().map(charge).collect();
    assert_eq!(before, expected(&[("forward", 8, 8)]));
}

#[test]
fn a_name_of_two_places_has_none() {
    let mut drawn = Drawn::new(100);
    let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
    for (from, text) in [(20, "load"), (30, "save"), (40, "load")] {
        drawn.0.names.push(SliceName {
            text: text.into(),
            location: format!("src/{from}.rs:1").into(),
            ..SliceName::default()
        });
        let name = u32::try_from(drawn.0.names.len() - 1).expect("few");
        drawn.slice(Slice {
            track: main,
            name,
            start_ns: from * 1000,
            duration_ns: 10_000,
            ..Slice::default()
        });
    }
    let [first, second] = [1, 60].map(|at| drawn.launch(main, (at, at + 1)));
    drawn.work(stream, (10, 20), Some(first));
    drawn.work(stream, (70, 80), Some(second));
    let device = &drawn.0.gpu_idle().devices[0];
    let places = device.charges.iter();
    let places: Vec<_> = places
        .map(|charge| (charge.name.as_deref(), &*charge.location, charge.idle_ns))
        .collect();
    assert_eq!(
        places,
        [
            (Some("load"), "", 20_000),
            (None, "", 11_000),
            (Some("save"), "src/30.rs:1", 10_000)
        ]
    );
}

#[test]
fn without_work_there_is_no_device() {
    let mut drawn = Drawn::new(10);
    let main = drawn.thread(1);
    drawn.scope(main, "main", (0, 10), None);
    assert_eq!(drawn.0.gpu_idle(), GpuIdle::default());
}

// ---- a model

const WINDOW: i64 = 160;
const THREADS: u32 = 3;
const DEVICES: u32 = 2;

/// A scope is a start, a length and a name; those that cross others are on a further track.
#[derive(Clone, Debug)]
pub(super) struct Program {
    scopes: Vec<(u32, i64, i64, u8, Option<usize>)>,
    polls: Vec<(u32, i64, i64, usize)>,
    futures: Vec<(i64, i64, Option<usize>)>,
    launches: Vec<(u32, i64, i64)>,
    works: Vec<(u32, i64, i64, Option<usize>)>,
    gaps: Vec<(i64, i64)>,
}

pub(super) fn programs() -> impl Strategy<Value = Program> {
    let index = || proptest::option::of(0..200_usize);
    let start = || -10..WINDOW;
    (
        proptest::collection::vec(
            (0..THREADS + 1, start(), 0..40_i64, 0..4_u8, index()),
            0..14,
        ),
        proptest::collection::vec((0..THREADS, start(), 1..9_i64, 0..200_usize), 0..8),
        proptest::collection::vec((start(), 0..60_i64, index()), 0..4),
        proptest::collection::vec((0..THREADS + 1, start(), 0..12_i64), 1..16),
        proptest::collection::vec(
            (
                0..2 * DEVICES,
                start(),
                0..25_i64,
                proptest::option::weighted(0.9, 0..200_usize),
            ),
            0..24,
        ),
        proptest::collection::vec((start(), 0..20_i64), 0..3),
    )
        .prop_map(|(scopes, polls, futures, launches, works, gaps)| Program {
            scopes,
            polls,
            futures,
            launches,
            works,
            gaps,
        })
}

impl Program {
    /// Tracks: threads; a further one of the first thread; futures; two streams of each device.
    pub(super) fn timeline(&self) -> Timeline {
        let mut drawn = Drawn::default();
        for thread in 0..THREADS {
            drawn.thread(thread.into());
        }
        let further = drawn.thread(0);
        let futures = drawn.track(TrackKind::Futures, 9, None);
        let streams: Vec<u32> = (0..2 * DEVICES)
            .map(|stream| drawn.stream(stream / 2, (stream % 2).into()))
            .collect();
        for number in 0..4 {
            drawn.name(&format!("f{number}"));
        }
        let future_name = drawn.name("future");
        let mut slices: Vec<Slice> = Vec::new();
        let parent = |of: Option<usize>, slices: &[Slice]| {
            let of = of.filter(|_| !slices.is_empty())? % slices.len();
            u32::try_from(of).ok()
        };
        for &(start_ns, duration_ns, of) in &self.futures {
            let parent = parent(of, &slices);
            slices.push(Slice {
                track: futures,
                name: future_name,
                kind: SliceKind::AsyncCall,
                start_ns,
                duration_ns,
                parent,
                ..Slice::default()
            });
        }
        let made = slices.len();
        for &(track, start_ns, duration_ns, future) in &self.polls {
            if made > 0 {
                slices.push(Slice {
                    track,
                    name: future_name,
                    kind: SliceKind::FuturePoll,
                    start_ns,
                    duration_ns,
                    parent: u32::try_from(future % made).ok(),
                    ..Slice::default()
                });
            }
        }
        for &(thread, start_ns, duration_ns, name, of) in &self.scopes {
            let parent = parent(of, &slices);
            slices.push(Slice {
                track: if thread == THREADS { further } else { thread },
                name: name.into(),
                start_ns,
                duration_ns,
                parent,
                ..Slice::default()
            });
        }
        let launches = (0..).zip(&self.launches);
        drawn.0.launches = launches
            .map(|(correlation, &(thread, start_ns, duration_ns))| Launch {
                track: if thread == THREADS { further } else { thread },
                start_ns,
                duration_ns,
                correlation,
                ..Launch::default()
            })
            .collect();
        // The work of a launch belongs to any call, or to none.
        let calls: Vec<u32> = (0..)
            .zip(&slices)
            .filter(|(_, slice)| slice.kind != SliceKind::FuturePoll)
            .map(|(index, _)| index)
            .collect();
        for &(stream, start_ns, duration_ns, launch) in &self.works {
            let launch = launch.map(|launch| launch % self.launches.len());
            slices.push(Slice {
                track: streams[stream as usize],
                kind: SliceKind::GpuWork,
                start_ns,
                duration_ns,
                launch: launch.and_then(|launch| u32::try_from(launch).ok()),
                parent: launch
                    .filter(|launch| launch % 4 != 0 && !calls.is_empty())
                    .map(|launch| calls[launch % calls.len()]),
                ..Slice::default()
            });
        }
        drawn.0.slices = slices;
        drawn.0.kernel_gaps = self
            .gaps
            .iter()
            .map(|&(start_ns, duration_ns)| KernelGap {
                start_ns,
                duration_ns,
                ..KernelGap::default()
            })
            .collect();
        drawn.0.duration_ns = WINDOW;
        drawn.0
    }
}

fn holds(slice: &Slice, at: i64) -> bool {
    slice.start_ns <= at && at < slice.start_ns + slice.duration_ns
}

/// Returns the call that is innermost on the thread of a track.
fn innermost(timeline: &Timeline, track: u32, at: i64) -> Option<usize> {
    let thread = |track: u32| {
        let track = &timeline.tracks[track as usize];
        (track.kind == TrackKind::HostThread).then_some(track.id)
    };
    let scopes = || {
        let slices = timeline.slices.iter().enumerate();
        slices.filter(|(_, slice)| {
            matches!(slice.kind, SliceKind::Call | SliceKind::FuturePoll)
                && slice.duration_ns > 0
                && thread(slice.track).is_some()
                && thread(slice.track) == thread(track)
        })
    };
    let order = |(index, slice): &(usize, &Slice)| (slice.start_ns, -slice.duration_ns, *index);
    let call = |(index, slice): (usize, &Slice)| match slice.kind {
        SliceKind::FuturePoll => slice.parent.map(|future| future as usize),
        _ => Some(index),
    };
    if let Some(scope) = scopes()
        .filter(|(_, slice)| holds(slice, at))
        .max_by_key(order)
    {
        return call(scope);
    }
    let (_, next) = scopes()
        .filter(|(_, slice)| slice.start_ns > at)
        .min_by_key(order)?;
    let future = next.parent.filter(|_| next.kind == SliceKind::FuturePoll)? as usize;
    (timeline.slices[future].start_ns <= at).then_some(future)
}

/// The state of a device at one time, and who is charged.
type State = (DeviceState, Option<usize>, bool);

fn state(timeline: &Timeline, device: u32, at: i64) -> State {
    let works = || {
        timeline.slices.iter().filter(|slice| {
            slice.kind == SliceKind::GpuWork
                && slice.duration_ns > 0
                && timeline.tracks[slice.track as usize].device == Some(device)
        })
    };
    let is_before = !works().any(|work| work.start_ns <= at);
    let launch_of = |work: &Slice| work.launch.map(|launch| timeline.launches[launch as usize]);
    let order = |work: &&Slice| {
        let launch = launch_of(work).map(|launch| (launch.start_ns, launch.correlation));
        (work.start_ns, launch.is_none(), launch)
    };
    let running = works()
        .filter(|work| holds(work, at))
        .min_by_key(|work| (order(work), -work.duration_ns));
    if let Some(work) = running {
        return (
            DeviceState::Busy,
            work.parent.map(|call| call as usize),
            false,
        );
    }
    let is_missing = timeline
        .kernel_gaps
        .iter()
        .any(|gap| gap.start_ns <= at && at < gap.start_ns + gap.duration_ns);
    let next = works().filter(|work| work.start_ns > at).min_by_key(order);
    let missing = (DeviceState::NotRecorded, None, is_before);
    if is_missing {
        return missing;
    }
    let Some(next) = next else {
        return (DeviceState::AfterLast, None, false);
    };
    let Some(launch) = launch_of(next) else {
        return missing;
    };
    let state = if at < launch.start_ns {
        DeviceState::Host
    } else if at < launch.start_ns + launch.duration_ns {
        DeviceState::LaunchCall
    } else {
        return (DeviceState::Launched, None, is_before);
    };
    (state, innermost(timeline, launch.track, at), is_before)
}

/// The names around a call, and its own.
fn names(timeline: &Timeline, call: usize) -> (String, BTreeSet<String>) {
    let name = |slice: &Slice| timeline.names[slice.name as usize].text.to_string();
    let parents = std::iter::successors(Some(call), |call| {
        timeline.slices[*call].parent.map(|parent| parent as usize)
    });
    let around = parents.map(|call| name(&timeline.slices[call])).collect();
    (name(&timeline.slices[call]), around)
}

/// The own and inclusive times by name; the empty name stands for no function.
type Charges = BTreeMap<String, (i64, i64, i64, i64)>;

fn by_name(charges: &[IdleCharge]) -> Charges {
    let charges = charges.iter();
    charges
        .map(|charge| {
            let times = (
                charge.idle_ns,
                charge.in_call_ns,
                charge.inclusive_ns,
                charge.inclusive_in_call_ns,
            );
            (charge.name.clone().unwrap_or_default(), times)
        })
        .collect()
}

/// The own and inclusive busy times by name.
fn busy_by_name(device: &DeviceIdle) -> BTreeMap<String, (i64, i64)> {
    let busy = device.busy.iter();
    busy.map(|of| {
        let name = of.name.clone().unwrap_or_default();
        (name, (of.busy_ns, of.inclusive_ns))
    })
    .collect()
}

/// The names where there is no call.
fn outside() -> (String, BTreeSet<String>) {
    (String::new(), BTreeSet::from([String::new()]))
}

/// Returns an error if an account differs from the model in any nanosecond.
fn compare(timeline: &Timeline, idle: &GpuIdle) -> Result<(), String> {
    let works = timeline.slices.iter();
    let works = works.filter(|slice| slice.kind == SliceKind::GpuWork && slice.duration_ns > 0);
    let begin = works
        .clone()
        .map(|work| work.start_ns)
        .min()
        .unwrap_or(0)
        .min(0);
    let last = works.map(|work| work.start_ns + work.duration_ns).max();
    let end = WINDOW.max(last.unwrap_or(0));
    for device in &idle.devices {
        let ordinal = device.device.ok_or("a device without an ordinal")?;
        let mut sums: BTreeMap<(String, bool), i64> = BTreeMap::new();
        let mut charges = [Charges::new(), Charges::new()];
        let mut busy: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        let mut segments = device.segments.iter().peekable();
        for at in begin..end {
            let model = state(timeline, ordinal, at);
            while segments.peek().is_some_and(|segment| segment.end_ns <= at) {
                segments.next();
            }
            let segment = segments.peek().ok_or(format!("no state at {at}"))?;
            let call = segment.call.map(|call| call as usize);
            let is_charged = matches!(model.0, DeviceState::Host | DeviceState::LaunchCall);
            if segment.start_ns > at
                || (segment.state, call) != (model.0, model.1)
                || (is_charged && segment.is_before_first != model.2)
            {
                return Err(format!("at {at}: {segment:?}, model {model:?}"));
            }
            *sums.entry((format!("{:?}", model.0), model.2)).or_default() += 1;
            if model.0 == DeviceState::Busy {
                let (own, around) = model.1.map_or_else(outside, |call| names(timeline, call));
                for name in around {
                    let times = busy.entry(name.clone()).or_default();
                    times.1 += 1;
                    times.0 += i64::from(name == own);
                }
            }
            if is_charged {
                let charges = &mut charges[usize::from(model.2)];
                let is_in_call = i64::from(model.0 == DeviceState::LaunchCall);
                let (own, around) = model.1.map_or_else(outside, |call| names(timeline, call));
                for name in around {
                    let times = charges.entry(name.clone()).or_default();
                    times.2 += 1;
                    times.3 += is_in_call;
                    if name == own {
                        times.0 += 1;
                        times.1 += is_in_call;
                    }
                }
            }
        }
        let sum = |state: &str, before: bool| {
            let sum = sums.get(&(state.to_owned(), before));
            sum.copied().unwrap_or_default()
        };
        let between = |state| sum(state, false);
        let before = sum("Host", true) + sum("LaunchCall", true) + sum("Launched", true);
        let not_recorded = between("NotRecorded") + sum("NotRecorded", true);
        let expected = [
            between("Busy"),
            between("Host"),
            between("LaunchCall"),
            between("Launched"),
            before,
            between("AfterLast"),
            not_recorded,
            end - begin,
        ];
        let found = [
            device.busy_ns,
            device.host_ns,
            device.in_call_ns,
            device.launched_ns,
            device.before_first_ns,
            device.after_last_ns,
            device.not_recorded_ns,
            device.window_ns(),
        ];
        let found_charges = [by_name(&device.charges), by_name(&device.before_first)];
        if found != expected || found_charges != charges {
            return Err(format!(
                "{found:?} {found_charges:?}, model {expected:?} {charges:?}"
            ));
        }
        let found = busy_by_name(device);
        if found != busy {
            return Err(format!("busy {found:?}, model {busy:?}"));
        }
        let own: i64 = device.charges.iter().map(|charge| charge.idle_ns).sum();
        if own != device.charged_ns() {
            return Err(format!("charges are {own}, idle {}", device.charged_ns()));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn each_nanosecond_is_in_the_state_that_the_rules_give(program in programs()) {
        let timeline = program.timeline();
        let idle = timeline.gpu_idle();
        prop_assert_eq!(compare(&timeline, &idle), Ok(()));
    }

    #[test]
    fn a_planted_nanosecond_is_found(program in programs(), which in 0..1000_usize, kind in 0..5) {
        let timeline = program.timeline();
        let mut idle = timeline.gpu_idle();
        prop_assume!(!idle.devices.is_empty());
        let devices = idle.devices.len();
        let device = &mut idle.devices[which % devices];
        match kind {
            0 => device.busy_ns += 1,
            1 => device.not_recorded_ns -= 1,
            2 => {
                let segments = device.segments.len();
                prop_assume!(segments > 1);
                let cut = 1 + which % (segments - 1);
                let (before, after) = (device.segments[cut - 1], device.segments[cut]);
                // The time before the first work is another state.
                prop_assume!((before.state, before.call) != (after.state, after.call));
                device.segments[cut - 1].end_ns += 1;
                device.segments[cut].start_ns += 1;
            }
            3 => {
                prop_assume!(!device.busy.is_empty());
                let functions = device.busy.len();
                device.busy[which % functions].inclusive_ns += 1;
            }
            _ => {
                let charges = device.charges.len();
                prop_assume!(charges > 0);
                device.charges[which % charges].inclusive_ns += 1;
            }
        }
        prop_assert!(compare(&timeline, &idle).is_err());
    }
}
