//! The time line of everything that was collected.

use std::collections::{BTreeMap, HashMap};

use profiler_report::internal::InOrder as _;
use profiler_report::{
    Device, DeviceProperties, Launch, ProcessorSample, ProcessorUse, Slice, SliceKind, Step,
    Timeline, TrackKind,
};

use super::collect::Collector;
use super::event::Id;
use super::launches::Callers;
use super::nesting::{NONE, Place};
use super::raw::{Raw, RawKind};
use super::tracks::Row;
use super::{counters, doubts, launches, nesting, pairs};
use crate::input::InputError;

/// Times before the year 2000 are no times of the calendar, but of a clock that began with the machine.
const CALENDAR_NS: i64 = 946_684_800_000_000_000;

pub(super) fn build(mut collector: Collector, title: &str) -> Result<Timeline, InputError> {
    collector.note_other_names();
    pairs::pair(&mut collector);
    if collector.writer.is_own {
        leave_out_markers(&mut collector);
    } else {
        leave_out_unknown_categories(&mut collector);
        find_device_rows(&mut collector);
    }
    let mut timeline = Timeline::default();
    title.clone_into(&mut timeline.title);
    let steps = take_steps(&mut collector);
    let places = nesting::nest_tracks(&mut collector.raws, &mut collector.memory_changes);
    Builder::new(collector, places).build(steps, &mut timeline)?;
    Ok(timeline)
}

/// Said of work on a device, below tables and in JSON.
const NO_LAUNCH: &str = "kernels, copies and fills have no launch in the file: only those that name their function are in its \
                         GPU time";

/// The name of the marker that keeps TensorBoard's plugin from merging a function with its only child.
const RECURSION: &str = "[recursion]";

fn leave_out_markers(collector: &mut Collector) {
    let Some(marker) = collector.names.find(RECURSION) else {
        return;
    };
    let is_marker = |raw: &Raw| raw.kind == RawKind::Function && raw.name == marker;
    let raws = &mut collector.raws;
    raws.retain(|raw| !is_marker(raw) || raw.external_id != 0);
}

/// The categories of functions on the CPU in files of PyTorch, beside `cpu_op`. Those of calls of a device's library end with
/// `_runtime` or `_driver`, for every kind of device.
const ON_CPU: [&str; 3] = ["Operator", "python_function", "user_annotation"];

/// Leaves out what no table can count: PyTorch writes ranges of devices and of its own with categories that this reader does
/// not know, and they are no functions on the CPU. In files of other programs, every category is one of functions.
fn leave_out_unknown_categories(collector: &mut Collector) {
    if !collector.has_operators {
        return;
    }
    let categories = &collector.categories;
    let is_known = |category: u32| {
        let text = categories.text(category).unwrap_or_default();
        let of_library = text.ends_with("_runtime") || text.ends_with("_driver");
        text.is_empty() || of_library || ON_CPU.contains(&text)
    };
    let mut left_out: BTreeMap<u32, u64> = BTreeMap::new();
    collector.raws.retain(|raw| {
        let is_kept = raw.kind != RawKind::Function || is_known(raw.category);
        if !is_kept {
            *left_out.entry(raw.category).or_default() += 1;
        }
        is_kept
    });
    for (category, count) in left_out {
        let text = categories.text(category).unwrap_or_default();
        let reason = format!(
            "events of the category `{text}` are no known work of a CPU or a device: they are left out"
        );
        collector.missing.insert(reason, count);
    }
}

/// Said of what may be work of a device, in a tool's file that this reader does not know.
const NO_CATEGORY: &str =
    "events have no category (`cat`): they are counted as functions on the CPU";

/// Makes work of what is on rows of devices, where tools write no categories.
fn find_device_rows(collector: &mut Collector) {
    let rows = collector.tracks.find_device_rows();
    let mut without_category = 0_u64;
    for raw in &mut collector.raws {
        if raw.kind != RawKind::Function {
            continue;
        }
        let Some(row) = rows.get(raw.track as usize).copied().flatten() else {
            let text = collector.categories.text(raw.category);
            let may_be_device = collector.tracks.may_be_of_device(raw.track);
            without_category += u64::from(may_be_device && text.is_none_or(str::is_empty));
            continue;
        };
        raw.kind = match row {
            Row::Work => RawKind::GpuWork,
            Row::Derived => RawKind::GpuRange,
        };
        raw.category = NONE;
    }
    if without_category > 0 {
        let missing = &mut collector.missing;
        missing.insert(NO_CATEGORY.to_owned(), without_category);
    }
}

/// Steps by their rank, if the file has several, and their number.
type Steps = BTreeMap<(Option<u64>, u64), Step>;

/// Returns the steps. As in PyTorch, a step is also a call around the others of its thread. In our own files, such steps have
/// an external id.
fn take_steps(collector: &mut Collector) -> Steps {
    let mut steps = Steps::new();
    for raw in &collector.raws {
        if raw.kind == RawKind::Step {
            let rare = collector.rares.of(raw);
            let step = Step {
                number: rare.step,
                start_ns: raw.start,
                end_ns: raw.end,
                track: rare.step_thread,
                ..Step::default()
            };
            let rank = collector.tracks.rank(raw.track);
            steps.entry((rank, step.number)).or_insert(step);
        }
    }
    if collector.writer.is_own {
        let raws = &mut collector.raws;
        raws.retain(|raw| raw.kind != RawKind::Step || raw.external_id != 0);
    }
    steps
}

struct Builder {
    collector: Collector,
    places: Vec<Place>,
    callers: Callers,
    /// For each span, itself or the innermost one around it that tables count.
    counted: Vec<u32>,
    /// The index of each launch that has work in [`Timeline::launches`].
    launches: HashMap<u32, u32>,
    /// The index of the slice of each span.
    slices: Vec<u32>,
    /// The number of each track of the file, and of the tracks beside it.
    tracks: HashMap<(u32, u32), u32>,
    /// The first process that has threads.
    host: Option<Id>,
    /// The first process that has threads, of each rank of a merged file.
    hosts: HashMap<u32, Id>,
    /// The properties of devices by their ranks and ordinals.
    devices: BTreeMap<(Option<u64>, u32), DeviceProperties>,
}

impl Builder {
    fn new(mut collector: Collector, mut places: Vec<Place>) -> Self {
        let raws = &collector.raws;
        nesting::apply_parents(raws, &collector.rares, &mut places);
        let callers = launches::callers(raws, &places, &collector.tracks);
        let is_counted = |index: u32| {
            !raws[index as usize].is_not_counted && places[index as usize].lane != NONE
        };
        let counted = nesting::innermost(&places, is_counted);
        let is_without =
            |(raw, launch): &(&Raw, &u32)| raw.kind == RawKind::GpuWork && **launch == NONE;
        let without = raws
            .iter()
            .zip(&callers.launches)
            .filter(is_without)
            .count();
        // Files of our own say themselves what they lack.
        if without > 0 && !collector.writer.is_own {
            collector
                .missing
                .insert(NO_LAUNCH.to_owned(), without as u64);
        }
        if !collector.writer.is_own {
            doubts::add_graph_gaps(&mut collector, &callers);
            doubts::doubt_endless_work(&mut collector);
        }
        let raws = &collector.raws;
        Self {
            slices: vec![NONE; raws.len()],
            tracks: HashMap::new(),
            places,
            callers,
            counted,
            launches: HashMap::new(),
            host: collector.tracks.host().cloned(),
            hosts: collector.tracks.hosts_of_ranks(),
            devices: BTreeMap::new(),
            collector,
        }
    }

    fn build(mut self, steps: Steps, timeline: &mut Timeline) -> Result<(), InputError> {
        for index in self.order() {
            self.add(timeline, index);
        }
        self.add_launches(timeline);
        self.add_steps(steps, timeline);
        timeline.work = std::mem::take(&mut self.collector.work);
        timeline.details = std::mem::take(&mut self.collector.details);
        timeline.waits = std::mem::take(&mut self.collector.waits);
        for wait in &mut timeline.waits {
            wait.rank = wait.rank.or(self.collector.job.rank);
        }
        timeline.kernel_gaps = std::mem::take(&mut self.collector.kernel_gaps);
        for gap in &mut timeline.kernel_gaps {
            gap.rank = gap.rank.or(self.collector.job.rank);
        }
        let job = &mut self.collector.job;
        timeline.world_size = job.world_size;
        timeline.backend = job.backend.take();
        timeline.groups = std::mem::take(&mut job.groups);
        timeline.metadata = std::mem::take(&mut self.collector.metadata);
        timeline.has_kernels = self.collector.writer.has_kernels;
        timeline.step_num = self.collector.writer.step_num;
        timeline.cycle = self.collector.writer.cycle;
        let counters = std::mem::take(&mut self.collector.counters);
        timeline.counters = counters::tracks(counters, &self.collector.tracks);
        self.add_processor(timeline);
        timeline.replays = std::mem::take(&mut self.collector.replays);
        for index in 0..timeline.replays.len() {
            let track = timeline.replays[index].track;
            let track = track.map(|track| self.track(timeline, track, 0, SliceKind::GpuScope));
            timeline.replays[index].track = track;
        }
        self.add_devices(timeline);
        set_times(timeline, self.collector.base_ns)?;
        timeline.missing = std::mem::take(&mut self.collector.writer.missing);
        let missing = std::mem::take(&mut self.collector.missing);
        timeline.missing.extend(missing);
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
        on_threads.order_by(by_start);
        on_streams.order_by(by_start);
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

    /// Adds the steps, with their slices and their threads.
    fn add_steps(&mut self, mut steps: Steps, timeline: &mut Timeline) {
        for (raw, slice) in self.collector.raws.iter().zip(&self.slices) {
            if raw.kind != RawKind::Step {
                continue;
            }
            let number = self.collector.rares.of(raw).step;
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
        for step in steps.values_mut() {
            let thread = step.track;
            step.track = thread.map(|thread| self.track(timeline, thread, 0, SliceKind::Call));
        }
        timeline.steps = steps.into_values().collect();
        let steps = &mut timeline.steps;
        steps.order_by_key(|step| (step.start_ns, step.number));
    }

    /// Adds the launches that have work or are said to be launches, and connects the work with them.
    fn add_launches(&mut self, timeline: &mut Timeline) {
        let raws = (0..).zip(&self.collector.raws);
        let said = raws.filter(|(_, raw)| raw.kind == RawKind::Launch && raw.is_launch);
        let said = said.map(|(index, _)| index);
        let launches = self.callers.launches.iter().copied();
        let mut used: Vec<u32> = launches
            .filter(|launch| *launch != NONE)
            .chain(said)
            .collect();
        used.order_by_key(|launch| (self.collector.raws[*launch as usize].start, *launch));
        used.dedup();
        for index in used {
            let raw = &self.collector.raws[index as usize];
            let rare = self.collector.rares.of(raw);
            let place = &self.places[index as usize];
            let mut launch = Launch {
                name: raw.name,
                start_ns: raw.start,
                duration_ns: raw.end.saturating_sub(raw.start),
                since_entered_ns: rare.since_entered_ns,
                ..Launch::default()
            };
            let correlation = rare.cupti_correlation.unwrap_or(raw.correlation);
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
        let rare = self.collector.rares.of(raw);
        let place = &self.places[index as usize];
        if place.lane == NONE {
            self.collector
                .miss("events overlap more than 64 others of their thread or stream");
            return;
        }
        if raw.is_not_counted {
            return;
        }
        let is_on_gpu = raw.kind.is_on_gpu();
        let parent = if is_on_gpu {
            self.callers.functions[index as usize]
        } else {
            self.function_around(place.parent)
        };
        let duration = raw.end.saturating_sub(raw.start);
        let memory = place.memory.as_deref().copied().unwrap_or_default();
        let mut slice = Slice {
            name: raw.name,
            start_ns: raw.start,
            duration_ns: duration,
            kind: match raw.kind {
                RawKind::GpuWork => SliceKind::GpuWork,
                RawKind::GpuScope => SliceKind::GpuScope,
                RawKind::GpuRange => SliceKind::GpuRange,
                RawKind::Future => SliceKind::AsyncCall,
                RawKind::Poll => SliceKind::FuturePoll,
                _ => SliceKind::Call,
            },
            measured_ns: rare.measured_ns.map(|ns| ns.max(0)),
            uncertainty_ns: rare.uncertainty_ns,
            moved_ns: rare.moved_ns,
            details: rare.details,
            ending: raw.ending,
            work: (raw.work != NONE).then_some(raw.work),
            shapes: (raw.shapes != NONE).then_some(raw.shapes),
            allocated_bytes: rare.own_memory.0.or(memory.allocated),
            device_bytes: rare.own_memory.1.or(memory.device_bytes),
            ..Slice::default()
        };
        // The work inside a range has a time of its own; what is left are pauses.
        slice.self_ns = if raw.kind == RawKind::GpuRange {
            0
        } else {
            let own = rare.self_ns.unwrap_or(duration - place.inside);
            own.clamp(0, slice.measured_ns.unwrap_or(duration))
        };
        let parent = self.slices.get(parent as usize).copied();
        slice.parent = parent.filter(|parent| *parent != NONE);
        if let Some(work) = self.collector.work.get_mut(raw.work as usize) {
            self.collector.tracks.restore(raw.track, work);
            work.stream = rare.cupti_stream.unwrap_or(work.stream);
        }
        let is_poll = slice.kind == SliceKind::FuturePoll;
        slice.category = (raw.category != NONE && !is_poll).then_some(raw.category);
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
            let mut new = self
                .collector
                .tracks
                .track(track, kind, &self.hosts, self.host.as_ref());
            new.rank = new.rank.or(self.collector.job.rank);
            let in_file = self.collector.tracks.device_in_file(track).or(new.device);
            let device = in_file.and_then(|device| self.collector.devices.get(&device));
            let device = device.filter(|_| is_stream);
            if let (Some((name, properties)), Some(ordinal)) = (device, new.device) {
                name.clone_into(&mut new.device_name);
                if *properties != DeviceProperties::default() {
                    self.devices.insert((new.rank, ordinal), *properties);
                }
            }
            if lane > 0 {
                new.name = format!("{} (beside {lane})", new.name);
            }
            timeline.tracks.push(new);
        }
        number
    }

    /// Adds the devices of the tracks, and those that the file names without one.
    fn add_devices(&mut self, timeline: &mut Timeline) {
        for (in_file, (rank, ordinal)) in &self.collector.known_devices {
            let rank = rank.or(self.collector.job.rank);
            if let Some((_, properties)) = self.collector.devices.get(in_file)
                && *properties != DeviceProperties::default()
            {
                self.devices.insert((rank, *ordinal), *properties);
            }
        }
        let devices = std::mem::take(&mut self.devices).into_iter();
        let devices = devices.map(|((rank, ordinal), properties)| {
            let mut device = Device::default();
            (device.rank, device.ordinal, device.properties) = (rank, ordinal, properties);
            device
        });
        timeline.devices = devices.collect();
    }

    /// Adds for how long threads were on a processor. Each event says which part of the time up to the next one.
    fn add_processor(&mut self, timeline: &mut Timeline) {
        for (track, mut shares) in std::mem::take(&mut self.collector.processor) {
            shares.order_by_key(|(at, _)| *at);
            let track = self.track(timeline, track, 0, SliceKind::Call);
            let mut of_thread = ProcessorUse {
                track,
                ..ProcessorUse::default()
            };
            let mut sample = ProcessorSample::default();
            for (place, (at, _)) in shares.iter().enumerate() {
                if let Some((from, [running, ready])) =
                    place.checked_sub(1).and_then(|before| shares.get(before))
                {
                    let part = |percent: f64| part_of(at.saturating_sub(*from), percent);
                    sample.running_ns = sample.running_ns.saturating_add(part(*running));
                    sample.ready_ns = sample.ready_ns.saturating_add(part(*ready));
                }
                sample.at_ns = *at;
                of_thread.samples.push(sample);
            }
            timeline.processor.push(of_thread);
        }
    }
}

/// Returns a share of a time, in percent, in nanoseconds.
#[allow(clippy::cast_possible_truncation, reason = "no more than the time")]
fn part_of(ns: i64, percent: f64) -> i64 {
    (ns as f64 * (percent / 100.0).clamp(0.0, 1.0)).round() as i64
}

/// Moves all times so that the time line begins at zero.
fn set_times(timeline: &mut Timeline, base_ns: Option<i64>) -> Result<(), InputError> {
    let (mut start, mut end) = (i64::MAX, i64::MIN);
    for_each_time(timeline, |at, duration| {
        start = start.min(*at);
        end = end.max(at.saturating_add(duration));
    });
    if start > end {
        return Ok(());
    }
    let Some(duration) = end.checked_sub(start) else {
        return Err(InputError::Clock("has times that are centuries apart"));
    };
    let start_unix = base_ns.unwrap_or(0).checked_add(start);
    let Some(start_unix) = start_unix.filter(|start| start.checked_add(duration).is_some()) else {
        return Err(InputError::Clock(
            "has times outside of the years 1677 to 2262 (with `baseTimeNanoseconds` added)",
        ));
    };
    timeline.duration_ns = duration;
    timeline.start_unix_ns = if start_unix >= CALENDAR_NS {
        start_unix
    } else {
        0
    };
    for_each_time(timeline, |at, _| *at -= start);
    Ok(())
}

/// Calls a function with each time, and with how long what began there took.
fn for_each_time(timeline: &mut Timeline, mut visit: impl FnMut(&mut i64, i64)) {
    for slice in &mut timeline.slices {
        visit(&mut slice.start_ns, slice.duration_ns);
    }
    for launch in &mut timeline.launches {
        visit(&mut launch.start_ns, launch.duration_ns);
    }
    for wait in &mut timeline.waits {
        visit(&mut wait.start_ns, wait.duration_ns);
    }
    for gap in &mut timeline.kernel_gaps {
        visit(&mut gap.start_ns, gap.duration_ns);
    }
    for replay in &mut timeline.replays {
        visit(&mut replay.noticed_ns, 0);
    }
    for step in &mut timeline.steps {
        visit(&mut step.start_ns, 0);
        visit(&mut step.end_ns, 0);
    }
    for counter in &mut timeline.counters {
        for (at, _) in &mut counter.samples {
            visit(at, 0);
        }
    }
    for of_thread in &mut timeline.processor {
        for sample in &mut of_thread.samples {
            visit(&mut sample.at_ns, 0);
        }
    }
}
