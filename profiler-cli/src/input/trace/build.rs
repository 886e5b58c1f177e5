//! The time line of everything that was collected.

use std::collections::{BTreeMap, HashMap, HashSet};

use profiler_runtime::report::{Counter, Launch, Slice, SliceKind, Step, Timeline, TrackKind};

use super::collect::{Collector, MemoryChange, Raw, RawKind};
use super::launches::Callers;
use super::nesting::{NONE, Place};
use super::{futures, launches, nesting, pairs};
use crate::input::InputError;

/// Times before the year 2000 are no times of the calendar, but of a clock that began with the machine.
const CALENDAR_NS: i64 = 946_684_800_000_000_000;

pub(super) fn build(mut collector: Collector, title: &str) -> Result<Timeline, InputError> {
    pairs::pair(&mut collector);
    if collector.is_own {
        leave_out_stand_ins(&mut collector);
        for raw in &mut collector.raws {
            // All annotations are polls, also where the future is not in the file.
            raw.is_poll |= raw.kind == RawKind::Annotation;
            raw.is_not_counted |= raw.kind == RawKind::Launch;
        }
    }
    if collector.is_own || collector.is_converted {
        leave_out_markers(&mut collector);
    }
    let mut timeline = Timeline::default();
    title.clone_into(&mut timeline.title);
    let steps = take_steps(&mut collector);
    let places = nest_tracks(&mut collector);
    Builder::new(collector, places).build(steps, &mut timeline)?;
    Ok(timeline)
}

/// The name of the marker that keeps TensorBoard's plugin from merging a function with its only child.
const RECURSION: &str = "[recursion]";

/// Leaves out the launches and kernels that `profiler-runtime` wrote for tools that know nothing else: they stand for the
/// GPU times of scopes, which are in the file too. So are counters of memory beside its changes. Launches of kernels that
/// were recorded remain.
fn leave_out_stand_ins(collector: &mut Collector) {
    let is_recorded = |raw: &Raw| raw.kind == RawKind::GpuWork && !raw.is_of_scope;
    let work = collector.raws.iter().filter(|raw| is_recorded(raw));
    let recorded: HashSet<u64> = work.map(|raw| raw.correlation).collect();
    collector.raws.retain(|raw| match raw.kind {
        RawKind::Launch => recorded.contains(&raw.correlation),
        RawKind::GpuWork => !raw.is_of_scope,
        _ => true,
    });
    collector.counters.retain(|key, _| !key.is_of_changes);
}

fn leave_out_markers(collector: &mut Collector) {
    let Some(marker) = collector.names.find(RECURSION) else {
        return;
    };
    let is_marker = |raw: &Raw| raw.kind == RawKind::Function && raw.name == marker;
    let raws = &mut collector.raws;
    raws.retain(|raw| !is_marker(raw) || raw.external_id != 0);
}

/// Steps by their rank, if the file has several, and their number.
type Steps = BTreeMap<(Option<u64>, u64), Step>;

/// Returns the steps. Where a step is the outermost call of a thread, as in PyTorch, it remains one. The command line gives
/// such steps an external id.
fn take_steps(collector: &mut Collector) -> Steps {
    let is_step = |raw: &Raw| matches!(raw.kind, RawKind::Step(_));
    let mut has_calls: HashMap<u32, bool> = HashMap::new();
    let mut steps = Steps::new();
    for raw in &collector.raws {
        let has_calls = has_calls.entry(raw.track).or_default();
        match raw.kind {
            RawKind::Step(number) => {
                let mut step = Step::default();
                (step.number, step.start_ns, step.end_ns) = (number, raw.start, raw.end);
                let rank = collector.tracks.rank(raw.track);
                steps.entry((rank, number)).or_insert(step);
            }
            _ => *has_calls = true,
        }
    }
    let is_converted = collector.is_converted;
    let is_call = |raw: &Raw| match has_calls.get(&raw.track) {
        _ if is_converted => raw.external_id != 0,
        has_calls => has_calls.is_some_and(|has| *has),
    };
    let raws = &mut collector.raws;
    raws.retain(|raw| !is_step(raw) || is_call(raw));
    steps
}

fn nest_tracks(collector: &mut Collector) -> Vec<Place> {
    let none = Place {
        parent: NONE,
        ..Place::default()
    };
    let raws = &mut collector.raws;
    let mut places = vec![none; raws.len()];
    let count = u32::try_from(raws.len()).unwrap_or(NONE);
    // A GPU time without length has no place among the work of its stream.
    let is_drawn = |raw: &Raw| raw.kind != RawKind::GpuAnnotation || raw.end > raw.start;
    let mut order: Vec<u32> = (0..count)
        .filter(|index| is_drawn(&raws[*index as usize]))
        .collect();
    order.sort_by(|one, other| nesting::before(&raws[*one as usize], &raws[*other as usize]));
    let memory = &mut collector.memory;
    memory.sort_by_key(|change| (change.track, change.at));
    let mut first = 0;
    while let Some(track) = order.get(first).map(|index| raws[*index as usize].track) {
        let length = order[first..].partition_point(|index| raws[*index as usize].track == track);
        let range = first..first + length;
        let changes = on_track(memory, track);
        let order = &order[range.clone()];
        if order
            .iter()
            .any(|index| raws[*index as usize].kind == RawKind::Future)
        {
            nesting::place_beside(raws, &mut places, order);
        } else {
            nesting::nest(raws, &mut places, order, changes);
        }
        first = range.end;
    }
    places
}

fn on_track(memory: &[MemoryChange], track: u32) -> &[MemoryChange] {
    let first = memory.partition_point(|change| change.track < track);
    let length = memory[first..].partition_point(|change| change.track == track);
    &memory[first..first + length]
}

struct Builder {
    collector: Collector,
    places: Vec<Place>,
    callers: Callers,
    /// For each span, itself or the innermost one around it that tables count.
    counted: Vec<u32>,
    /// The index of each launch that has work in [`Timeline::launches`].
    launches: HashMap<u32, u32>,
    is_poll: Vec<bool>,
    /// The index of the slice of each span.
    slices: Vec<u32>,
    /// The number of each track of the file, and of the tracks beside it.
    tracks: HashMap<(u32, u32), u32>,
    /// Streams with work, whose ranges only enclose it.
    has_work: HashMap<u32, bool>,
}

impl Builder {
    fn new(collector: Collector, mut places: Vec<Place>) -> Self {
        let raws = &collector.raws;
        if collector.is_own || collector.is_converted {
            nesting::apply_parents(raws, &mut places);
        }
        let is_poll = futures::connect(raws, &mut places);
        let callers = launches::callers(raws, &places);
        let is_counted = |index: u32| !raws[index as usize].is_not_counted;
        let counted = nesting::innermost(&places, is_counted);
        let mut has_work = HashMap::new();
        for raw in raws.iter().filter(|raw| raw.kind == RawKind::GpuWork) {
            has_work.insert(raw.track, true);
        }
        Self {
            slices: vec![NONE; raws.len()],
            tracks: HashMap::new(),
            collector,
            places,
            callers,
            counted,
            launches: HashMap::new(),
            is_poll,
            has_work,
        }
    }

    fn build(mut self, steps: Steps, timeline: &mut Timeline) -> Result<(), InputError> {
        for index in self.order() {
            self.add(timeline, index);
        }
        self.add_launches(timeline);
        self.add_steps(steps, timeline);
        timeline.work = std::mem::take(&mut self.collector.work);
        self.add_counters(timeline);
        timeline.replays = std::mem::take(&mut self.collector.replays);
        set_times(timeline, self.collector.base_ns)?;
        timeline.missing = std::mem::take(&mut self.collector.missing)
            .into_iter()
            .collect();
        timeline.names = self.collector.names.into_names();
        let shapes = self.collector.shapes.into_names().into_iter();
        timeline.shapes = shapes.map(|shapes| shapes.text.to_string()).collect();
        let categories = self.collector.categories.into_names().into_iter();
        timeline.categories = categories.map(|category| category.text).collect();
        Ok(())
    }

    /// Returns all spans by their beginnings, each after those around it; those on GPUs come last.
    fn order(&self) -> Vec<u32> {
        let raws = &self.collector.raws;
        let count = u32::try_from(raws.len()).unwrap_or(NONE);
        let (mut on_threads, mut on_streams) = (Vec::new(), Vec::new());
        for index in 0..count {
            let is_on_gpu = raws[index as usize].kind.is_on_gpu();
            if is_on_gpu {
                &mut on_streams
            } else {
                &mut on_threads
            }
            .push(index);
        }
        let by_start = |one: &u32, other: &u32| {
            let key = |index: &u32| {
                let raw = &raws[*index as usize];
                (raw.start, std::cmp::Reverse(raw.end))
            };
            key(one).cmp(&key(other))
        };
        on_threads.sort_by(by_start);
        on_streams.sort_by(by_start);
        let mut ordered = Vec::with_capacity(raws.len());
        let mut is_ordered = vec![false; raws.len()];
        let mut chain = Vec::new();
        for index in on_threads.into_iter().chain(on_streams) {
            // The parents that are not ordered yet, up to a circle, which no program makes.
            let mut next = index;
            while next != NONE && !std::mem::replace(&mut is_ordered[next as usize], true) {
                chain.push(next);
                next = self.places[next as usize].parent;
            }
            ordered.extend(chain.drain(..).rev());
        }
        ordered
    }

    /// Adds the steps, with their slices.
    fn add_steps(&self, mut steps: Steps, timeline: &mut Timeline) {
        for (raw, slice) in self.collector.raws.iter().zip(&self.slices) {
            let RawKind::Step(number) = raw.kind else {
                continue;
            };
            let rank = self.collector.tracks.rank(raw.track);
            let step = steps.get_mut(&(rank, number));
            if let Some(step) = step.filter(|step| step.slice.is_none())
                && step.start_ns == raw.start
                && *slice != NONE
            {
                step.slice = Some(*slice);
                // It may have been rounded to that of the call around it.
                step.end_ns = raw.end;
            }
        }
        timeline.steps = steps.into_values().collect();
        let steps = &mut timeline.steps;
        steps.sort_by_key(|step| (step.start_ns, step.number));
    }

    /// Adds the launches that have work, and connects the work with them.
    fn add_launches(&mut self, timeline: &mut Timeline) {
        let mut used: Vec<u32> = self.callers.launches.clone();
        used.retain(|launch| *launch != NONE);
        used.sort_by_key(|launch| (self.collector.raws[*launch as usize].start, *launch));
        used.dedup();
        for index in used {
            let raw = &self.collector.raws[index as usize];
            let place = &self.places[index as usize];
            let mut launch = Launch::default();
            launch.name = raw.name;
            launch.start_ns = raw.start;
            launch.duration_ns = raw.end.saturating_sub(raw.start);
            let correlation = raw.cupti_correlation.unwrap_or(raw.correlation);
            launch.correlation = u32::try_from(correlation).unwrap_or_default();
            let parent = self.function_around(place.parent);
            let parent = self.slices.get(parent as usize).copied();
            launch.parent = parent.filter(|parent| *parent != NONE);
            let slice = self.slices[index as usize];
            launch.slice = (slice != NONE).then_some(slice);
            let (track, lane) = (raw.track, place.lane);
            if lane == NONE {
                continue;
            }
            launch.track = self.track(timeline, track, lane, SliceKind::Call);
            let next = u32::try_from(timeline.launches.len()).unwrap_or(NONE);
            self.launches.insert(index, next);
            timeline.launches.push(launch);
        }
        for (slice, launch) in self.slices.iter().zip(&self.callers.launches) {
            if let Some(slice) = timeline.slices.get_mut(*slice as usize) {
                slice.launch = self.launches.get(launch).copied();
            }
        }
    }

    fn add(&mut self, timeline: &mut Timeline, index: u32) {
        let raw = &self.collector.raws[index as usize];
        if raw.is_not_counted {
            return;
        }
        let place = &self.places[index as usize];
        if place.lane == NONE {
            self.collector
                .miss("events overlap more than 64 others of their thread or stream");
            return;
        }
        let is_on_gpu = raw.kind.is_on_gpu();
        let parent = if is_on_gpu {
            self.callers.functions[index as usize]
        } else {
            self.function_around(place.parent)
        };
        let duration = raw.end.saturating_sub(raw.start);
        let mut slice = Slice::default();
        slice.name = raw.name;
        slice.start_ns = raw.start;
        slice.duration_ns = duration;
        slice.kind = match raw.kind {
            RawKind::GpuWork => SliceKind::GpuWork,
            RawKind::GpuAnnotation => SliceKind::GpuScope,
            RawKind::Future => SliceKind::AsyncCall,
            _ if self.is_poll[index as usize] => SliceKind::FuturePoll,
            _ => SliceKind::Call,
        };
        slice.measured_ns = raw.measured_ns.map(|ns| ns.max(0));
        let own = raw.self_ns.unwrap_or(duration - place.inside);
        let collector = &self.collector;
        let says_self_time = collector.is_own || collector.is_converted && raw.self_ns.is_some();
        slice.self_ns = match raw.kind {
            // The work inside has a time of its own; what is left are pauses.
            RawKind::GpuAnnotation if !says_self_time && self.has_work.contains_key(&raw.track) => {
                0
            }
            _ => own.clamp(0, slice.measured_ns.unwrap_or(duration)),
        };
        let parent = self.slices.get(parent as usize).copied();
        slice.parent = parent.filter(|parent| *parent != NONE);
        slice.ending = raw.ending;
        slice.work = (raw.work != NONE).then_some(raw.work);
        if let Some(work) = self.collector.work.get_mut(raw.work as usize) {
            self.collector.tracks.restore(raw.track, work);
        }
        slice.shapes = (raw.shapes != NONE).then_some(raw.shapes);
        let is_poll = slice.kind == SliceKind::FuturePoll;
        slice.category = (raw.category != NONE && !is_poll).then_some(raw.category);
        slice.allocated_bytes = raw.own_memory.0.or(place.allocated);
        slice.device_bytes = raw.own_memory.1.or(place.device_bytes);
        let (track, lane) = (raw.track, place.lane);
        slice.track = self.track(timeline, track, lane, slice.kind);
        self.slices[index as usize] = u32::try_from(timeline.slices.len()).unwrap_or(NONE);
        timeline.slices.push(slice);
    }

    /// Returns a span, or the nearest one around it that becomes a slice.
    fn function_around(&self, index: u32) -> u32 {
        self.counted.get(index as usize).copied().unwrap_or(NONE)
    }

    /// Returns the track of a slice.
    fn track(&mut self, timeline: &mut Timeline, track: u32, lane: u32, kind: SliceKind) -> u32 {
        let is_stream = self.collector.tracks.is_stream(track);
        let next = u32::try_from(timeline.tracks.len()).unwrap_or(NONE);
        let number = *self.tracks.entry((track, lane)).or_insert(next);
        if number == next {
            let kind = match kind {
                _ if is_stream => TrackKind::GpuStream,
                SliceKind::AsyncCall => TrackKind::Futures,
                _ => TrackKind::HostThread,
            };
            let mut new = self.collector.tracks.track(track, kind);
            new.rank = new.rank.or(self.collector.rank);
            let device = self.collector.tracks.device_in_file(track).or(new.device);
            let device = device.and_then(|device| self.collector.devices.get(&device));
            new.device_name = device.cloned().unwrap_or_default();
            if lane > 0 {
                new.name = format!("{} (beside {lane})", new.name);
            }
            timeline.tracks.push(new);
        }
        number
    }

    fn add_counters(&mut self, timeline: &mut Timeline) {
        for (key, mut samples) in std::mem::take(&mut self.collector.counters) {
            samples.sort_by_key(|sample| sample.0);
            let mut counter = Counter::default();
            counter.name = key.name;
            key.unit.clone_into(&mut counter.unit);
            counter.device = key.device;
            counter.samples = samples;
            timeline.counters.push(counter);
        }
    }
}

/// Moves all times so that the time line begins at zero.
fn set_times(timeline: &mut Timeline, base_ns: Option<i64>) -> Result<(), InputError> {
    let slices = timeline.slices.iter();
    let spans = slices.map(|slice| {
        (
            slice.start_ns,
            slice.start_ns.saturating_add(slice.duration_ns),
        )
    });
    let steps = timeline
        .steps
        .iter()
        .map(|step| (step.start_ns, step.end_ns));
    let samples = timeline
        .counters
        .iter()
        .flat_map(|counter| &counter.samples);
    let launches = timeline.launches.iter();
    let launches = launches.map(|launch| (launch.start_ns, launch.start_ns));
    let spans = spans
        .chain(steps)
        .chain(launches)
        .chain(samples.map(|sample| (sample.0, sample.0)));
    let Some((start, end)) = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    else {
        return Ok(());
    };
    let Some(duration) = end.checked_sub(start) else {
        return Err(InputError::Time {
            event: 0,
            name: timeline.title.clone(),
            what: "its times are centuries apart".to_owned(),
        });
    };
    timeline.duration_ns = duration;
    timeline.start_unix_ns = base_ns
        .map_or(Some(start), |base| base.checked_add(start))
        .filter(|start| *start >= CALENDAR_NS)
        .unwrap_or_default();
    for slice in &mut timeline.slices {
        slice.start_ns -= start;
    }
    for launch in &mut timeline.launches {
        launch.start_ns -= start;
    }
    for replay in &mut timeline.replays {
        replay.noticed_ns = replay.noticed_ns.saturating_sub(start);
    }
    for step in &mut timeline.steps {
        step.start_ns -= start;
        step.end_ns -= start;
    }
    for sample in timeline
        .counters
        .iter_mut()
        .flat_map(|counter| &mut counter.samples)
    {
        sample.0 -= start;
    }
    Ok(())
}
