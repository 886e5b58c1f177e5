//! Time lines as Chrome traces, with what other tools look for, and so that the command line reads the same time line.

mod calls;
mod gpu;
mod idle;
mod processor;

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use super::event_writer::{EventLine, EventWriter, Quoted, Track as Place};
use super::header::{self, Head};
use super::nesting::{NotNested, OpenSlices, lone_recursions, not_nested};
use super::places::{GroupedTracks, Places};
use super::stand_ins::{pieces, tracks_of_stand_ins};
use super::times::{ReadEnd, length, shared_base};
use super::written_name::{UNKNOWN, WrittenName, with_name};
use crate::ExportError;
use crate::file::ExportFile;
use crate::in_order::InOrder as _;
use crate::text::json::string;
use crate::timeline::OnGpu;
use crate::well_known::STEP;
use crate::{Launch, Slice, SliceKind, Step, Timeline};
use profiler_cuda_sys::driver::DeviceProperties;

impl Timeline {
    /// Writes the time line in Chrome's trace format, for Perfetto, `chrome://tracing` and HTA; compressed if the name ends
    /// with `.gz`.
    ///
    /// Each rank's process, and each device of it, is a process of the trace. If the time line is of one rank, the head of
    /// the file says so.
    ///
    /// | in the trace | meaning |
    /// |---|---|
    /// | a slice of a thread | a scope, or a poll of a future |
    /// | a slice of `futures N` | a future, from its first poll to its end |
    /// | `gpu_user_annotation` | the GPU time of a scope, on a track below that of its stream if kernels were recorded |
    /// | `kernel`, `gpu_memcpy`, `gpu_memset` | what ran on the device, with the fields that PyTorch writes |
    /// | a slice of a thread, `cuda_runtime` | the call of CUDA that launched it |
    /// | an arrow | leads from the call to the first work that it launched |
    /// | a slice of `waits N`, `cuda_sync` | a wait for a stream, an event or the device |
    /// | a slice of `idle because, GPU N`, `gpu_idle` | why the device was idle: the function that it waited for, a launch call, or what is not known |
    /// | a slice of `kernels not recorded`, `kernel_gap` | a time without records of kernels, copies and fills, and why |
    /// | `ProfilerStep#N` | a step |
    /// | an instant, `replay` | a replay of a graph, when it was noticed |
    /// | a counter | a value over time, with its unit as the key |
    /// | an instant, `[memory]` | what a scope allocated or freed, for TensorBoard's memory view |
    /// | a slice without length, `[recursion]` | keeps TensorBoard from merging a scope with the only scope inside it, of its name |
    ///
    /// Slices keep the categories that they have in PyTorch's files; scopes are operators (`cpu_op`). A slice may show only the
    /// end of a path: the table `nameTable` in the head of the file has the whole name and the source location of each such
    /// name. If several functions have the same short name, their slices have the arguments `full name` and `location`
    /// instead. A call of the driver has the name of the runtime's
    /// call that does its work, which the tools know: `cudaLaunchKernel` for `cuLaunchKernel`. The argument `call` is the
    /// real one. `ProfilerStep` in the name of a scope is written as `Profiler Step`, because the tools would treat the
    /// scope as a step. Correlations are numbered anew, from 100,001 on; the argument `correlation of CUPTI` is the former
    /// one, and so is `stream of CUPTI` where the number of the stream is another one.
    ///
    /// Kernels have `blocks per SM`, `warps per SM` and `est. achieved occupancy %`, computed from the launch and from the
    /// properties of the device (`deviceProperties` in the head of the file) as PyTorch does: a kernel that needs more shared
    /// memory than a block gets by default is counted with what it asked for. The occupancy is that of a kernel that has the
    /// device to itself; it is not measured. Values that the driver does not know are left out.
    ///
    /// In processes without [kernels](crate::GpuWork), scopes are measured, and the tools still count kernels. The
    /// events that they read as kernels are the self times of scopes on the GPU, and have `"scope": true`. Each has a launch
    /// (`cudaLaunchKernel`, of length zero) where the scope began, or where the preceding scope inside it had ended. Their
    /// totals are those of the scopes.
    ///
    /// GPU times of scopes have their uncertainty (`uncertainty_ns`), and `moved_ns` if they are drawn elsewhere by more than
    /// that. A time that does not fit inside its parent is shortened; its full length is in `ns`. A GPU time of zero, one
    /// that was shortened to zero, or one with an unknown start is not drawn; its scope has `cuda_ns`. The time of a scope
    /// without those inside on its stream is in `self_ns`, as tables count it.
    ///
    /// Where the nesting of slices does not show the parent of a scope or its self time, because a parent is on another
    /// thread or a guard was dropped out of order, the scope has `parent`, the `External id` of its parent (0 for none),
    /// and `self_ns`. The command line reads all of these arguments, so that the file has the table of the time line.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_report::{Slice, SliceName, Timeline, Track};
    ///
    /// let mut name = SliceName::default();
    /// name.text = "load".into();
    /// let mut slice = Slice::default();
    /// slice.duration_ns = 1000;
    /// let mut timeline = Timeline::default();
    /// timeline.names.push(name);
    /// timeline.tracks.push(Track::default());
    /// timeline.slices.push(slice);
    /// let path = std::env::temp_dir().join(format!("line-{}.json", std::process::id()));
    /// timeline.export_chrome_trace(&path)?;
    /// assert!(profiler_trace_validator::validate(&path)?.is_empty());
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_chrome_trace(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        export(self, path.as_ref(), super::LAUNCHES)
    }
}

/// Writes a time line to a file as a Chrome trace, whose launches have the category `launches`.
///
/// # Errors
///
/// Returns an error if the file cannot be created or written.
pub fn export(timeline: &Timeline, path: &Path, launches: &str) -> Result<(), ExportError> {
    let write = || write(timeline, ExportFile::create(path)?, launches)?.finish();
    write().map_err(|source| ExportError::io(path, source))
}

/// Writes a time line, with launches of this category.
///
/// # Errors
///
/// Returns the error of the writer.
pub fn write<'t, W: Write>(timeline: &'t Timeline, mut out: W, launches: &'t str) -> io::Result<W> {
    let on_gpu = timeline.on_gpu();
    let mut places = Places::new(timeline, on_gpu);
    let slices = timeline.slices.iter().map(|slice| slice.start_ns);
    let starts = timeline.launches.iter().map(|launch| launch.start_ns);
    let steps = timeline.steps.iter().map(|step| step.start_ns);
    let replays = timeline.replays.iter().map(|replay| replay.noticed_ns);
    let counters = timeline.counters.iter();
    let samples = counters.flat_map(|counter| counter.samples.iter().map(|(at, _)| *at));
    let processor = timeline
        .processor
        .iter()
        .flat_map(|of_thread| &of_thread.samples);
    let samples = samples.chain(processor.map(|sample| sample.at_ns));
    let waits = timeline.waits.iter().map(|wait| wait.start_ns);
    let starts = slices.chain(starts).chain(steps).chain(replays);
    let gaps = timeline.kernel_gaps.iter().map(|gap| gap.start_ns);
    let starts = starts.chain(waits).chain(gaps);
    let first = starts.chain(samples).min().unwrap_or(0).min(0);
    let base = match timeline.start_unix_ns.saturating_add(first) {
        start if start > 0 => shared_base(start),
        start => start,
    };
    let pieces = pieces(timeline, on_gpu);
    let names = WrittenName::all(timeline);
    let head = Head {
        timeline,
        places: &places,
        names: &names,
        base,
        has_stand_ins: !pieces.is_empty(),
    };
    header::write(&head, &mut out)?;
    let launch_of = launches_of_slices(timeline);
    let mut writer = TimelineWriter {
        timeline,
        offset: timeline.start_unix_ns.saturating_sub(base),
        names,
        categories: timeline
            .categories
            .iter()
            .map(|text| escaped(text))
            .collect(),
        steps: timeline.steps_of_slices(),
        ids: ids(timeline, &launch_of),
        launch_of,
        first_work: first_work(timeline, on_gpu),
        not_nested: not_nested(timeline),
        recursions: lone_recursions(timeline),
        gpu_of: gpu_of(timeline, on_gpu),
        devices: timeline
            .devices
            .iter()
            .map(|device| ((device.rank, device.ordinal), &device.properties))
            .collect(),
        are_stand_ins: tracks_of_stand_ins(timeline, on_gpu),
        on_gpu,
        read_ends: HashMap::new(),
        launches,
        further: timeline.launches.len() as u64,
        unknown: HashMap::new(),
        events: EventWriter::new(out),
    };
    // Launches before their work: an arrow to it needs a start.
    writer.write_calls(&places)?;
    writer.write_gpu(&mut places)?;
    for piece in pieces {
        writer.write_piece(piece, &mut places)?;
    }
    writer.write_waits(&mut places)?;
    writer.write_idle(&mut places)?;
    writer.write_kernel_gaps(&mut places)?;
    writer.write_steps(&mut places)?;
    writer.write_replays(&mut places)?;
    writer.write_counters(&places)?;
    writer.write_processor(&places)?;
    places.write(timeline, &mut writer.events)?;
    let mut out = writer.events.finish()?;
    out.write_all(b"\n]}\n")?;
    Ok(out)
}

/// For each slice that is a launch, the index of the launch.
fn launches_of_slices(timeline: &Timeline) -> HashMap<u32, u32> {
    let mut launch_of = HashMap::new();
    for (index, launch) in (0..).zip(&timeline.launches) {
        if let Some(slice) = timeline.slice_of(launch.slice) {
            launch_of.entry(slice).or_insert(index);
        }
    }
    launch_of
}

/// Returns the `External id` that each slice gives to what is inside it: a launch gives that of the slice around it. Empty if
/// no slice is a launch.
fn ids(timeline: &Timeline, launch_of: &HashMap<u32, u32>) -> Vec<u64> {
    if launch_of.is_empty() {
        return Vec::new();
    }
    let mut ids: Vec<u64> = Vec::with_capacity(timeline.slices.len());
    for (index, slice) in (0..).zip(&timeline.slices) {
        // A parent comes before its child.
        let around = slice.parent.and_then(|parent| ids.get(parent as usize));
        ids.push(if launch_of.contains_key(&index) {
            around.copied().unwrap_or(0)
        } else {
            u64::from(index) + 1
        });
    }
    ids
}

/// For each launch, the start of its first work, if that is not before the launch.
fn first_work(timeline: &Timeline, on_gpu: OnGpu<'_>) -> Vec<Option<i64>> {
    let mut first: Vec<Option<i64>> = vec![None; timeline.launches.len()];
    let slices = on_gpu.iter().map(|(_, slice)| slice);
    for slice in slices.filter(|slice| slice.kind == SliceKind::GpuWork) {
        let launch = slice.launch.map(|launch| launch as usize);
        if let Some((first, launch)) = launch.and_then(|launch| {
            let known = timeline.launches.get(launch)?;
            timeline.tracks.get(known.track as usize)?;
            Some((first.get_mut(launch)?, known))
        }) && launch.start_ns <= slice.start_ns
        {
            *first = Some(first.map_or(slice.start_ns, |first| first.min(slice.start_ns)));
        }
    }
    first
}

/// Returns the GPU time of each scope that has one.
fn gpu_of(timeline: &Timeline, on_gpu: OnGpu<'_>) -> HashMap<u32, u32> {
    let mut gpu_of = HashMap::new();
    for (index, slice) in on_gpu.iter() {
        if slice.kind == SliceKind::GpuScope
            && let Some(parent) = timeline.slice_of(slice.parent)
            && timeline.slices[parent as usize].name == slice.name
        {
            gpu_of.entry(parent).or_insert(index);
        }
    }
    gpu_of
}

/// A time line being written.
struct TimelineWriter<'t, W> {
    timeline: &'t Timeline,
    on_gpu: OnGpu<'t>,
    /// From the base of the file to the start of the time line.
    offset: i64,
    names: Vec<WrittenName>,
    /// Escaped, without quotes.
    categories: Vec<String>,
    /// The steps that are slices, by the indices of these.
    steps: HashMap<u32, &'t Step>,
    launch_of: HashMap<u32, u32>,
    /// For each slice, the `External id` of what is inside it; empty if that of each is its own number.
    ids: Vec<u64>,
    /// For each slice of a thread, what the nesting does not show of it.
    not_nested: Vec<NotNested>,
    first_work: Vec<Option<i64>>,
    /// Operators that are the only ones inside an operator of their name, and the operators around.
    recursions: HashMap<u32, u32>,
    /// The GPU time of each scope that has one.
    gpu_of: HashMap<u32, u32>,
    /// The properties of devices by their ranks and ordinals.
    devices: HashMap<(Option<u64>, u32), &'t DeviceProperties>,
    /// For each track, `true` if the GPU times on it stand for kernels, which are drawn inside of them.
    are_stand_ins: Vec<bool>,
    /// The ends of these GPU times as readers compute them.
    read_ends: HashMap<u32, ReadEnd>,
    /// The category of launches.
    launches: &'t str,
    /// The number of correlations so far.
    further: u64,
    /// The tracks for launches that are not known, by rank.
    unknown: HashMap<Option<u64>, Place>,
    events: EventWriter<W>,
}

/// What is open on a track, as readers see it.
#[derive(Default)]
struct TrackState {
    /// With the end of each as readers compute it.
    open: OpenSlices<ReadEnd>,
    /// The launches that are not written yet, the next one last.
    launches: Vec<u32>,
}

impl TrackState {
    /// Returns the end of the slice around the next one.
    fn around(&mut self, slices: &[Slice], next: &Slice) -> ReadEnd {
        self.open.close(slices, next, |_, _| ());
        self.open.0.last().map_or(ReadEnd::NEVER, |(_, end)| *end)
    }

    fn push(&mut self, index: u32, end: ReadEnd) {
        self.open.0.push((index, end));
    }
}

impl<W: Write> TimelineWriter<'_, W> {
    /// Returns the `External id` of what is inside a slice; 0 outside of all.
    fn id_inside(&self, slice: Option<u32>) -> u64 {
        let index = slice.filter(|index| (*index as usize) < self.timeline.slices.len());
        index.map_or(0, |index| {
            let id = self.ids.get(index as usize).copied();
            id.unwrap_or(u64::from(index) + 1)
        })
    }

    /// Returns the `External id` of a launch, which its work must have too.
    fn id_of_launch(&self, launch: &Launch) -> u64 {
        self.id_inside(self.timeline.slice_of(launch.slice).or(launch.parent))
    }

    /// Writes the steps that are no slices on tracks of their own: they may end anywhere between the scopes of a thread.
    fn write_steps(&mut self, places: &mut Places) -> io::Result<()> {
        let timeline = self.timeline;
        let steps = timeline.steps.iter();
        let steps = steps.filter(|step| timeline.slice_of(step.slice).is_none());
        let mut steps: Vec<_> = steps.collect();
        steps.order_by_key(|step| step.start_ns);
        let mut lanes = GroupedTracks::default();
        for step in steps {
            let start = step.start_ns.saturating_add(self.offset);
            let end = step.end_ns.saturating_add(self.offset);
            let thread = step.track.filter(|track| places.of(*track).is_some());
            let place = lanes.take(thread, (start, end), |number| {
                places.further_for_steps(timeline, thread, number)
            });
            let (length, _) = length(start, end, ReadEnd::NEVER);
            let name = step_name(step.number);
            let name = Quoted::new(&name);
            let line = self
                .events
                .slice("user_annotation", name, place, start, length);
            // It may be drawn a little shorter.
            let line = line.signed("ns", end.saturating_sub(start));
            match thread.and_then(|track| places.of(track)) {
                Some(thread) => line.whole("thread", thread.tid).end()?,
                None => line.end()?,
            }
        }
        Ok(())
    }

    fn write_replays(&mut self, places: &mut Places) -> io::Result<()> {
        let timeline = self.timeline;
        let mut of_ranks: HashMap<Option<u64>, Place> = HashMap::new();
        for replay in &timeline.replays {
            let near = replay.track.unwrap_or(0);
            let rank = timeline.tracks.get(near as usize);
            let place = *of_ranks
                .entry(rank.and_then(|track| track.rank))
                .or_insert_with(|| {
                    let name = "replays of graphs, when they were noticed".to_owned();
                    places.further(timeline, near, name)
                });
            let at = replay.noticed_ns.saturating_add(self.offset);
            let name = self.names.get(replay.name as usize);
            let short = name.map_or(UNKNOWN, |name| &name.short);
            let line = self.events.instant("replay", Quoted::new(short), place, at);
            let mut line = with_name(line, name)
                .signed("ns", replay.duration_ns)
                .signed("self_ns", replay.self_ns);
            let track = replay.track;
            let track = track.and_then(|track| timeline.tracks.get(track as usize));
            if let (Some(track), Some(stream)) = (track, replay.track.and_then(|at| places.of(at)))
            {
                line = line
                    .text("stream", &track.name)
                    .whole("cuda_device", stream.pid)
                    .whole("cuda_stream", stream.tid);
            }
            line.end()?;
        }
        Ok(())
    }

    fn write_counters(&mut self, places: &Places) -> io::Result<()> {
        for counter in &self.timeline.counters {
            let name = string(&counter.title());
            let unit = if counter.unit.is_empty() {
                "value".to_owned()
            } else {
                escaped(&counter.unit)
            };
            let samples = counter.samples.iter();
            for (at, value) in samples.filter(|(_, value)| value.is_finite()) {
                let at = at.saturating_add(self.offset);
                let line = self
                    .events
                    .counter(Quoted::new(&name), places.first_host(), at);
                line.number(&unit, *value).end()?;
            }
        }
        Ok(())
    }
}

/// Begins an event with its category and its name.
fn named<'w, W: Write>(
    events: &'w mut EventWriter<W>,
    (category, name): (&str, Option<&WrittenName>),
    place: Place,
    (start, length): (i64, i64),
) -> EventLine<'w, W> {
    let short = name.map_or(UNKNOWN, |name| &name.short);
    let line = events.slice(category, Quoted::new(short), place, start, length);
    with_name(line, name)
}

fn category_in<'c>(categories: &'c [String], slice: &Slice) -> Option<&'c str> {
    let text = categories.get(slice.category? as usize)?;
    Some(text)
}

fn escaped(text: &str) -> String {
    let quoted = string(text);
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns the name of a step, as a JSON string.
fn step_name(number: u64) -> String {
    format!("\"{STEP}#{number}\"")
}

#[cfg(test)]
mod tests;
