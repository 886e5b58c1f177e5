//! Time lines as Chrome traces.
//!
//! Traces of the running program are written by `window::chrome`, with everything that other tools look for. This one writes
//! what a time line has, so that the command line reads the same time line from the file.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use super::args::{with_correlation, with_kind, with_shapes, with_times};
use super::event_writer::{ArrowEnd, EventLine, EventWriter, Quoted, Track as Place, write_list};
use super::launch_names::known_name;
use super::nesting::{Nested, OpenSlices, lone_recursions, nest};
use super::places::Places;
use super::times::{ReadEnd, length, shared_base};
use super::work_args::{category_of, with_work};
use super::{CORRELATIONS, STEP_NAMES};
use crate::report::export::ExportError;
use crate::report::export::file::ExportFile;
use crate::report::export::overlap::OverlapTracks;
use crate::report::text::json::string;
use crate::report::{Launch, Slice, SliceKind, Timeline};

impl Timeline {
    /// Writes the time line in Chrome's trace format, for Perfetto, `chrome://tracing` and HTA; compressed if the name ends
    /// with `.gz`.
    ///
    /// Each rank's process, and each device of it, is a process of the trace. Slices keep the categories that they have in
    /// PyTorch's files; scopes are operators (`cpu_op`). Each launch is written once, with the `correlation` of its work.
    /// Arrows lead from launches to their first work, and from scopes to their GPU times. If the time line is of one rank,
    /// the head of the file says so.
    ///
    /// Arguments hold what the format has no field for. The command line reads them, so that the file has the table of the
    /// time line. Correlations are numbered anew, from 100,001 on; the argument `correlation of CUPTI` is the former one.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::report::{Slice, SliceName, Timeline, Track};
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
        let path = path.as_ref();
        let write = || write(self, ExportFile::create(path)?)?.finish();
        write().map_err(|source| ExportError::io(path, source))
    }
}

/// The number of the first arrow from a scope to its GPU time. Those from launches have lower ones.
const ARROWS_OF_SCOPES: u64 = 1 << 40;

fn write<W: Write>(timeline: &Timeline, mut out: W) -> io::Result<W> {
    let mut places = Places::new(timeline);
    let slices = timeline.slices.iter().map(|slice| slice.start_ns);
    let launches = timeline.launches.iter().map(|launch| launch.start_ns);
    let steps = timeline.steps.iter().map(|step| step.start_ns);
    let replays = timeline.replays.iter().map(|replay| replay.noticed_ns);
    let counters = timeline.counters.iter();
    let samples = counters.flat_map(|counter| counter.samples.iter().map(|(at, _)| *at));
    let starts = slices.chain(launches).chain(steps).chain(replays);
    let first = starts.chain(samples).min().unwrap_or(0).min(0);
    let base = match timeline.start_unix_ns.saturating_add(first) {
        start if start > 0 => shared_base(start),
        start => start,
    };
    out.write_all(&head(timeline, &places, base))?;
    let launch_of = launches_of_slices(timeline);
    let mut writer = TimelineWriter {
        timeline,
        offset: timeline.start_unix_ns.saturating_sub(base),
        names: names(timeline),
        categories: timeline
            .categories
            .iter()
            .map(|text| escaped(text))
            .collect(),
        steps: timeline.numbers_of_steps(),
        ids: ids(timeline, &launch_of),
        launch_of,
        first_work: first_work(timeline),
        markers: lone_recursions(timeline),
        events: EventWriter::new(out),
    };
    // Before their work: an arrow to it needs a start.
    writer.write_launches(&places)?;
    writer.write_slices(&mut places)?;
    writer.write_steps(&mut places)?;
    writer.write_replays(&mut places)?;
    writer.write_counters(&places)?;
    places.write(timeline, &mut writer.events)?;
    let mut out = writer.events.into_inner();
    out.write_all(b"\n]}\n")?;
    Ok(out)
}

/// Returns everything up to the events.
fn head(timeline: &Timeline, places: &Places, base: i64) -> Vec<u8> {
    let mut head = br#"{"schemaVersion":1,"#.to_vec();
    head.extend(b"\n\"deviceProperties\":");
    let devices = places.device_names(timeline);
    write_list(&mut head, devices.iter().enumerate(), |out, (id, name)| {
        out.extend(format!(r#"{{"id":{id},"name":{}}}"#, string(name)).into_bytes());
    });
    let mut ranks: Vec<Option<u64>> = timeline.tracks.iter().map(|track| track.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    if let [Some(rank)] = ranks[..] {
        // HTA's search for the rank needs the space.
        let info = format!(",\n\"distributedInfo\":{{\"backend\":\"unknown\",\"rank\": {rank}}}");
        head.extend(info.into_bytes());
    }
    let title = string(&timeline.title);
    let about = format!(
        ",\n\"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":{base},\n\"traceName\":{title},\n\"profiler\":\
         {{\"name\":\"profiler\",\"version\":\"{}\",\"missing\":",
        env!("CARGO_PKG_VERSION")
    );
    head.extend(about.into_bytes());
    write_list(&mut head, &timeline.missing, |out, (reason, count)| {
        out.extend(format!("[{},{count}]", string(reason)).into_bytes());
    });
    head.extend(b"},\n\"traceEvents\":[\n");
    head
}

/// The name of a slice without one.
const UNKNOWN: &str = r#""(unknown)""#;

/// A name as it is written, as JSON strings.
struct WrittenName {
    short: String,
    /// The whole name, if it is another one.
    full: Option<String>,
}

fn names(timeline: &Timeline) -> Vec<WrittenName> {
    let names = timeline.names.iter().map(|name| {
        let short = if name.short.is_empty() {
            &name.text
        } else {
            &name.short
        };
        let short = short.replace(STEP_NAMES.0, STEP_NAMES.1);
        WrittenName {
            full: (*short != *name.text).then(|| string(&name.text)),
            short: string(&short),
        }
    });
    names.collect()
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

/// Returns the `External id` that each slice gives to what is inside it: a launch gives that of the slice around it.
fn ids(timeline: &Timeline, launch_of: &HashMap<u32, u32>) -> Vec<u64> {
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
fn first_work(timeline: &Timeline) -> Vec<Option<i64>> {
    let mut first: Vec<Option<i64>> = vec![None; timeline.launches.len()];
    let work = |slice: &&Slice| slice.kind == SliceKind::GpuWork;
    for slice in timeline.slices.iter().filter(work) {
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

/// A time line being written.
struct TimelineWriter<'t, W> {
    timeline: &'t Timeline,
    /// From the base of the file to the start of the time line.
    offset: i64,
    names: Vec<WrittenName>,
    /// Escaped, without quotes.
    categories: Vec<String>,
    /// The number of the step that a slice is.
    steps: HashMap<u32, u64>,
    launch_of: HashMap<u32, u32>,
    /// For each slice, the `External id` of what is inside it.
    ids: Vec<u64>,
    first_work: Vec<Option<i64>>,
    /// Operators that need a marker beside them, and the operators around.
    markers: HashMap<u32, u32>,
    events: EventWriter<W>,
}

/// What is open on a track, as readers see it.
#[derive(Default)]
struct TrackState {
    open: OpenSlices,
    /// The end of each open slice as readers compute it.
    ends: Vec<ReadEnd>,
}

impl<W: Write> TimelineWriter<'_, W> {
    fn write_slices(&mut self, places: &mut Places) -> io::Result<()> {
        let timeline = self.timeline;
        let mut tracks: Vec<TrackState> = Vec::new();
        tracks.resize_with(timeline.tracks.len(), TrackState::default);
        let (nested, inside) = nest(timeline);
        let mut unknown: HashMap<u64, Place> = HashMap::new();
        let mut further = timeline.launches.len() as u64;
        for (index, slice) in (0..).zip(&timeline.slices) {
            let Some(place) = places.of(slice.track) else {
                continue;
            };
            let known = Nested {
                parent: nested[index as usize],
                inside: inside[index as usize],
            };
            match slice.kind {
                SliceKind::GpuScope => self.write_gpu_scope(index, place, places)?,
                SliceKind::GpuWork => {
                    let correlation = match slice.launch {
                        Some(launch) if (launch as usize) < timeline.launches.len() => {
                            CORRELATIONS + 1 + u64::from(launch)
                        }
                        _ => {
                            further += 1;
                            let correlation = CORRELATIONS + further;
                            let host = timeline.tracks.get(slice.track as usize);
                            let rank = host.and_then(|track| track.rank).unwrap_or(u64::MAX);
                            let own = place;
                            let place = *unknown.entry(rank).or_insert_with(|| {
                                let name = "launches that were not recorded".to_owned();
                                places.further(timeline, slice.track, name)
                            });
                            self.write_stand_in(slice, place, correlation)?;
                            self.write_arrow_to(slice, own, correlation, places)?;
                            correlation
                        }
                    };
                    let stream = places.stream(slice.track);
                    self.write_gpu_work(slice, place, stream, (correlation, known))?;
                }
                _ => {
                    let state = &mut tracks[slice.track as usize];
                    self.write_call(index, place, state, known)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the `External id` of what is inside a slice; 0 outside of all.
    fn id_inside(&self, slice: Option<u32>) -> u64 {
        let id = slice.and_then(|slice| self.ids.get(slice as usize));
        id.copied().unwrap_or(0)
    }

    /// Returns the `External id` of a launch, which its work must have too.
    fn id_of_launch(&self, launch: &Launch) -> u64 {
        self.id_inside(self.timeline.slice_of(launch.slice).or(launch.parent))
    }

    fn write_call(
        &mut self,
        index: u32,
        place: Place,
        state: &mut TrackState,
        nested: Nested,
    ) -> io::Result<()> {
        let slices = &self.timeline.slices;
        let slice = &slices[index as usize];
        state.open.close(slices, slice);
        state.ends.truncate(state.open.0.len());
        let around = state.ends.last().copied().unwrap_or(ReadEnd::NEVER);
        let start = slice.start_ns.saturating_add(self.offset);
        let mut end = start.saturating_add(slice.duration_ns.max(0));
        let marker = self.markers.get(&index).copied();
        let marker = marker.map(|around| &slices[around as usize]);
        let marker = marker.filter(|around| around.duration_ns > 0);
        let at_start = marker.filter(|around| around.start_ns < slice.start_ns);
        if marker.is_some() && at_start.is_none() {
            end = around.last_before(start, end);
        }
        let (length, read_end) = length(start, end, around);
        state.open.0.push(index);
        state.ends.push(read_end);
        if marker.is_some() {
            let at = at_start.map_or(start.saturating_add(length), |around| {
                around.start_ns.saturating_add(self.offset)
            });
            let name = Quoted::new(r#""[recursion]""#);
            self.events.slice("python", name, place, at, 0).end()?;
        }
        self.write_call_at(index, place, (start, length), nested)
    }

    fn write_call_at(
        &mut self,
        index: u32,
        place: Place,
        (start, length): (i64, i64),
        nested: Nested,
    ) -> io::Result<()> {
        let timeline = self.timeline;
        let slice = &timeline.slices[index as usize];
        let launch = self.launch_of.get(&index).copied();
        let id = self.id_inside(Some(index));
        let category = match slice.kind {
            SliceKind::FuturePoll => "user_annotation",
            _ if self.steps.contains_key(&index) => "user_annotation",
            _ => category_in(&self.categories, slice).unwrap_or("cpu_op"),
        };
        let step = self.steps.get(&index).map(|number| step_name(*number));
        let name = self.names.get(slice.name as usize);
        let short = name.map_or(UNKNOWN, |name| &name.short);
        let short = step.as_deref().unwrap_or(short);
        let mut line = self
            .events
            .slice(category, Quoted::new(short), place, start, length);
        line = line.whole("External id", id);
        if let Some(launch) = launch {
            let known = timeline.launches.get(launch as usize);
            let line_of = line.whole("id", u64::from(index) + 1);
            line = with_correlation(
                line_of,
                CORRELATIONS + 1 + u64::from(launch),
                known.map(|launch| launch.correlation),
            );
        }
        line = with_full_name(line, name.filter(|_| step.is_none()));
        let location = timeline.names.get(slice.name as usize);
        if let Some(name) = location.filter(|name| !name.location.is_empty()) {
            line = line.text("location", &name.location);
        }
        if nested.parent != slice.parent {
            let parent = slice.parent.map_or(0, |parent| u64::from(parent) + 1);
            line = line.whole("parent", parent);
        }
        line = with_times(line, slice, length, nested.inside);
        line = with_kind(line, slice);
        if let Some(shapes) = slice.shapes.and_then(|at| timeline.shapes.get(at as usize)) {
            line = with_shapes(line, shapes);
        }
        line.end()?;
        if let Some(launch) = launch {
            self.write_arrow_start(launch, place, start)?;
        }
        Ok(())
    }

    /// Writes the launches that tables do not count.
    fn write_launches(&mut self, places: &Places) -> io::Result<()> {
        for (index, launch) in (0..).zip(&self.timeline.launches) {
            let slice = self.timeline.slice_of(launch.slice);
            let is_slice = slice.is_some_and(|slice| self.launch_of.get(&slice) == Some(&index));
            let Some(place) = places.of(launch.track).filter(|_| !is_slice) else {
                continue;
            };
            let name = self.timeline.names.get(launch.name as usize);
            let call = name.map_or("(unknown)", |name| &name.text);
            let known = known_name(call);
            let start = launch.start_ns.saturating_add(self.offset);
            let id = self.id_of_launch(launch);
            let name = string(known);
            let mut line = self.events.slice(
                "cuda_runtime",
                Quoted::new(&name),
                place,
                start,
                launch.duration_ns,
            );
            line = line.whole("External id", id);
            let correlation = CORRELATIONS + 1 + u64::from(index);
            line = with_correlation(line, correlation, Some(launch.correlation))
                .json("counted", |out| out.extend(b"false"));
            if known != call {
                line = line.text("call", call);
            }
            line.end()?;
            self.write_arrow_start(index, place, start)?;
        }
        Ok(())
    }

    fn write_arrow_start(&mut self, launch: u32, place: Place, start: i64) -> io::Result<()> {
        let has_work = self.first_work.get(launch as usize).copied().flatten();
        if has_work.is_none() {
            return Ok(());
        }
        let id = CORRELATIONS + 1 + u64::from(launch);
        self.events.arrow(ArrowEnd::Start, id, place, start)
    }

    /// Writes a stand-in for the launch of some work, which is not known: the tools expect one.
    fn write_stand_in(&mut self, slice: &Slice, place: Place, correlation: u64) -> io::Result<()> {
        let name = Quoted::new(r#""launch that was not recorded""#);
        let start = slice.start_ns.saturating_add(self.offset);
        let id = self.id_inside(slice.parent);
        let line = self.events.slice("cuda_runtime", name, place, start, 0);
        line.whole("External id", id)
            .whole("correlation", correlation)
            .set("stand-in")
            .end()
    }

    /// Writes the GPU time of a scope, and an arrow to it.
    fn write_gpu_scope(&mut self, index: u32, place: Place, places: &Places) -> io::Result<()> {
        let slice = &self.timeline.slices[index as usize];
        let id = self.id_inside(slice.parent);
        let start = slice.start_ns.saturating_add(self.offset);
        let length = slice.duration_ns.max(0);
        let line = named(
            &mut self.events,
            ("gpu_user_annotation", self.names.get(slice.name as usize)),
            place,
            (start, length),
        );
        let mut line = line
            .whole("External id", id)
            .signed("self_ns", slice.self_ns);
        if let Some(ns) = slice.measured_ns {
            line = line.signed("ns", ns);
        }
        line.end()?;
        // Perfetto attaches arrows to slices of length zero, if there are any.
        if length == 0 {
            return Ok(());
        }
        self.write_arrow_to(slice, place, ARROWS_OF_SCOPES + u64::from(index), places)
    }

    /// Writes an arrow to a slice on the GPU, from its parent.
    fn write_arrow_to(
        &mut self,
        slice: &Slice,
        place: Place,
        arrow: u64,
        places: &Places,
    ) -> io::Result<()> {
        let parent = slice.parent.map(|parent| parent as usize);
        let parent = parent.and_then(|parent| self.timeline.slices.get(parent));
        let parent = parent.filter(|parent| parent.start_ns <= slice.start_ns);
        let from = parent.and_then(|parent| Some((places.of(parent.track)?, parent.start_ns)));
        let Some((from, at)) = from else {
            return Ok(());
        };
        let [at, start] = [at, slice.start_ns].map(|ns| ns.saturating_add(self.offset));
        self.events.arrow(ArrowEnd::Start, arrow, from, at)?;
        self.events.arrow(ArrowEnd::Finish, arrow, place, start)
    }

    fn write_gpu_work(
        &mut self,
        slice: &Slice,
        place: Place,
        stream: u64,
        (correlation, nested): (u64, Nested),
    ) -> io::Result<()> {
        let timeline = self.timeline;
        let launch = slice
            .launch
            .and_then(|launch| timeline.launches.get(launch as usize));
        // That of its launch, as the tools need it.
        let id = match launch {
            Some(launch) => self.id_of_launch(launch),
            None => self.id_inside(slice.parent),
        };
        let work = slice.work.and_then(|work| timeline.work.get(work as usize));
        let category = category_in(&self.categories, slice);
        let category = category.unwrap_or_else(|| work.map_or("kernel", category_of));
        let start = slice.start_ns.saturating_add(self.offset);
        let length = slice.duration_ns.max(0);
        let mut line = named(
            &mut self.events,
            (category, self.names.get(slice.name as usize)),
            place,
            (start, length),
        );
        line = line
            .whole("External id", id)
            .whole("device", place.pid)
            .whole("stream", stream);
        line = with_correlation(line, correlation, work.map(|work| work.correlation));
        line = with_times(line, slice, length, nested.inside);
        if let Some(work) = work {
            line = with_work(line.whole("context", work.context.into()), work, length);
        }
        line.end()?;
        let first = slice.launch.map(|launch| launch as usize);
        let first = first.and_then(|launch| self.first_work.get_mut(launch));
        let is_first =
            first.is_some_and(|first| first.take_if(|at| *at == slice.start_ns).is_some());
        if is_first {
            self.events
                .arrow(ArrowEnd::Finish, correlation, place, start)?;
        }
        Ok(())
    }

    /// Writes the steps that are no slices on tracks of their own: they may end anywhere between the scopes of a thread.
    fn write_steps(&mut self, places: &mut Places) -> io::Result<()> {
        let timeline = self.timeline;
        let steps = timeline.steps.iter();
        let steps = steps.filter(|step| timeline.slice_of(step.slice).is_none());
        let mut steps: Vec<_> = steps.collect();
        steps.sort_by_key(|step| step.start_ns);
        let mut lanes = OverlapTracks::default();
        let mut made: Vec<Place> = Vec::new();
        for step in steps {
            let start = step.start_ns.saturating_add(self.offset);
            let end = step.end_ns.saturating_add(self.offset);
            let number = lanes.take(start, end, |number| {
                made.push(places.further(timeline, 0, format!("steps {number}")));
                number - 1
            });
            let (length, _) = length(start, end, ReadEnd::NEVER);
            let name = step_name(step.number);
            let name = Quoted::new(&name);
            let line = self
                .events
                .slice("user_annotation", name, made[number], start, length);
            // It may be drawn a little shorter.
            line.signed("ns", end.saturating_sub(start)).end()?;
        }
        Ok(())
    }

    fn write_replays(&mut self, places: &mut Places) -> io::Result<()> {
        let timeline = self.timeline;
        if timeline.replays.is_empty() {
            return Ok(());
        }
        let name = "replays of graphs, when they were noticed".to_owned();
        let place = places.further(timeline, 0, name);
        for replay in &timeline.replays {
            let at = replay.noticed_ns.saturating_add(self.offset);
            let name = self.names.get(replay.name as usize);
            let short = name.map_or(UNKNOWN, |name| &name.short);
            let line = self.events.instant("replay", Quoted::new(short), place, at);
            let mut line = with_full_name(line, name)
                .signed("ns", replay.duration_ns)
                .signed("self_ns", replay.self_ns);
            let track = replay.track;
            let track = track.and_then(|track| timeline.tracks.get(track as usize));
            if let Some(track) = track {
                line = line.text("stream", &track.name);
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
    with_full_name(line, name)
}

fn with_full_name<'w, W: Write>(
    line: EventLine<'w, W>,
    name: Option<&WrittenName>,
) -> EventLine<'w, W> {
    match name.and_then(|name| name.full.as_deref()) {
        Some(full) => line.quoted("full name", Quoted::new(full)),
        None => line,
    }
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
    format!("\"{}#{number}\"", STEP_NAMES.0)
}

#[cfg(test)]
mod tests;
