//! Scopes, polls and futures, and the calls of CUDA among them.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::{Place, TimelineWriter, TrackState, UNKNOWN, category_in, step_name, with_name};
use crate::chrome::args::{
    with_correlation, with_details, with_kind, with_shapes, with_times, with_uncertainty,
};
use crate::chrome::event_writer::{ArrowEnd, Quoted};
use crate::chrome::launch_names::known_name;
use crate::chrome::memory::{self, MemoryPlace};
use crate::chrome::places::Places;
use crate::chrome::times::length;
use crate::chrome::written_name::with_location;
use crate::chrome::{CORRELATIONS, RECURSION};
use crate::in_order::InOrder as _;
use crate::text::json::string;
use crate::{Launch, Slice, SliceDetails, SliceKind, Timeline};

impl<W: Write> TimelineWriter<'_, W> {
    /// Writes the slices of threads and futures, and the launches that tables do not count.
    pub(super) fn write_calls(&mut self, places: &Places) -> io::Result<()> {
        let timeline = self.timeline;
        let mut tracks = self.tracks_with_launches();
        for (index, slice) in (0..).zip(&timeline.slices) {
            let Some(place) = places.of(slice.track).filter(|_| !slice.is_on_gpu()) else {
                continue;
            };
            let state = &mut tracks[slice.track as usize];
            while let Some(launch) = state.next_launch(timeline, Some(slice)) {
                self.write_launch(launch, place, state)?;
            }
            self.write_call(index, place, state, places)?;
        }
        for (track, state) in (0..).zip(&mut tracks) {
            while let Some(launch) = state.next_launch(timeline, None) {
                if let Some(place) = places.of(track) {
                    self.write_launch(launch, place, state)?;
                }
            }
        }
        Ok(())
    }

    /// Returns all tracks, with the launches on them that are no slices.
    fn tracks_with_launches(&self) -> Vec<TrackState> {
        let timeline = self.timeline;
        let mut tracks: Vec<TrackState> = Vec::new();
        tracks.resize_with(timeline.tracks.len(), TrackState::default);
        for (index, launch) in (0..).zip(&timeline.launches) {
            let slice = timeline.slice_of(launch.slice);
            let is_slice = slice.is_some_and(|slice| self.launch_of.get(&slice) == Some(&index));
            if !is_slice && let Some(state) = tracks.get_mut(launch.track as usize) {
                state.launches.push(index);
            }
        }
        for state in &mut tracks {
            let start = |launch: &u32| timeline.launches[*launch as usize].start_ns;
            state.launches.order_by_key(start);
            state.launches.reverse();
        }
        tracks
    }

    fn write_call(
        &mut self,
        index: u32,
        place: Place,
        state: &mut TrackState,
        places: &Places,
    ) -> io::Result<()> {
        let slices = &self.timeline.slices;
        let slice = &slices[index as usize];
        let around = state.around(slices, slice);
        let start = slice.start_ns.saturating_add(self.offset);
        let mut end = start.saturating_add(slice.duration_ns.max(0));
        // TensorBoard's trace plugin needs a slice of another name beside it.
        let caller = self.recursions.get(&index).copied();
        let caller = caller.map(|around| &slices[around as usize]);
        let caller = caller.filter(|around| around.duration_ns > 0);
        let at_start = caller.filter(|around| around.start_ns < slice.start_ns);
        if caller.is_some() && at_start.is_none() {
            end = around.last_before(start, end);
        }
        let (length, read_end) = length(start, end, around);
        state.push(index, read_end);
        if caller.is_some() {
            let at = at_start.map_or(end, |around| around.start_ns.saturating_add(self.offset));
            let name = Quoted::new(RECURSION);
            self.events.slice("python", name, place, at, 0).end()?;
        }
        self.write_call_at(index, place, (start, length), places)?;
        self.write_memory(index, place, (start, length), places)
    }

    fn write_call_at(
        &mut self,
        index: u32,
        place: Place,
        (start, length): (i64, i64),
        places: &Places,
    ) -> io::Result<()> {
        let timeline = self.timeline;
        let slice = &timeline.slices[index as usize];
        let launch = self.launch_of.get(&index).copied();
        let id = self.id_inside(Some(index));
        let step = self.steps.get(&index).copied();
        let category = match slice.kind {
            SliceKind::FuturePoll => "user_annotation",
            _ if step.is_some() => "user_annotation",
            _ => category_in(&self.categories, slice).unwrap_or("cpu_op"),
        };
        let step_name = step.map(|step| step_name(step.number));
        let name = self.names.get(slice.name as usize);
        let short = name.map_or(UNKNOWN, |name| &name.short);
        let short = step_name.as_deref().unwrap_or(short);
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
        line = match (step, name) {
            // The table does not have the names of steps.
            (Some(_), Some(name)) => with_location(line, name),
            _ => with_name(line, name),
        };
        // A reader looks for the thread in the process of the step.
        let thread = step.and_then(|step| places.of(step.track?));
        if let Some(thread) = thread.filter(|thread| thread.pid == place.pid) {
            line = line.whole("thread", thread.tid);
        }
        let not_nested = self.not_nested.get(index as usize).copied();
        let not_nested = not_nested.unwrap_or_default();
        if not_nested.parent {
            let parent = slice.parent.map_or(0, |parent| u64::from(parent) + 1);
            line = line.whole("parent", parent);
        }
        line = with_times(line, slice, length, not_nested.own);
        line = with_kind(line, slice);
        if let Some(shapes) = slice.shapes.and_then(|at| timeline.shapes.get(at as usize)) {
            line = with_shapes(line, shapes);
        }
        if let Some(details) = details_of(timeline, slice) {
            line = with_details(line, details);
        }
        let gpu = self.gpu_of.get(&index);
        let gpu = gpu.map(|gpu| &timeline.slices[*gpu as usize]);
        if let Some(gpu) = gpu.filter(|gpu| gpu.duration_ns <= 0)
            && let Some(stream) = places.of(gpu.track)
        {
            line = line
                .signed("cuda_ns", gpu.total_ns())
                .signed("cuda_self_ns", gpu.self_ns)
                .whole("cuda_device", stream.pid)
                .whole("cuda_stream", stream.tid);
            let after = gpu.start_ns.saturating_sub(slice.start_ns);
            if after != 0 {
                line = line.signed("cuda_after_ns", after);
            }
            line = with_uncertainty(line, gpu);
        }
        line.end()?;
        if let Some(launch) = launch {
            self.write_arrow_start(launch, place, start)?;
        }
        Ok(())
    }

    fn write_memory(
        &mut self,
        index: u32,
        thread: Place,
        (start, length): (i64, i64),
        places: &Places,
    ) -> io::Result<()> {
        let timeline = self.timeline;
        let slice = &timeline.slices[index as usize];
        let Some(details) = details_of(timeline, slice) else {
            return Ok(());
        };
        let Some(memory) = &details.memory else {
            return Ok(());
        };
        let gpu = self.gpu_of.get(&index);
        let device = gpu.and_then(|gpu| places.of(timeline.slices[*gpu as usize].track));
        let place = MemoryPlace {
            thread,
            at: start.saturating_add((length - 1).max(0)),
            device: device.map_or_else(|| places.first_device(), |stream| stream.pid),
            id: self.id_inside(Some(index)),
        };
        memory::write(&mut self.events, &place, (slice, details), memory)
    }

    fn write_launch(&mut self, index: u32, place: Place, state: &mut TrackState) -> io::Result<()> {
        let timeline = self.timeline;
        let launch = &timeline.launches[index as usize];
        let name = timeline.names.get(launch.name as usize);
        let call = name.map_or("(unknown)", |name| &name.text);
        let known = known_name(call);
        let around = state.around(&timeline.slices, &as_slice(launch));
        let start = launch.start_ns.saturating_add(self.offset);
        let end = start.saturating_add(launch.duration_ns.max(0));
        let (length, _) = length(start, end, around);
        let id = self.id_of_launch(launch);
        let name = string(known);
        let mut line = self
            .events
            .slice(self.launches, Quoted::new(&name), place, start, length);
        line = line.whole("External id", id);
        let correlation = CORRELATIONS + 1 + u64::from(index);
        line = with_correlation(line, correlation, Some(launch.correlation))
            .json("counted", |out| out.extend(b"false"));
        if known != call {
            line = line.text("call", call);
        }
        let parent = timeline.slice_of(launch.parent);
        if state.open.0.last().map(|(open, _)| *open) != parent {
            line = line.whole("parent", parent.map_or(0, |parent| u64::from(parent) + 1));
        }
        if let Some(ns) = launch.since_entered_ns {
            line = line.signed("ns since entered", ns);
        }
        if length != launch.duration_ns {
            line = line.signed("ns", launch.duration_ns);
        }
        line.end()?;
        self.write_arrow_start(index, place, start)
    }

    fn write_arrow_start(&mut self, launch: u32, place: Place, start: i64) -> io::Result<()> {
        let has_work = self.first_work.get(launch as usize).copied().flatten();
        if has_work.is_none() {
            return Ok(());
        }
        let id = CORRELATIONS + 1 + u64::from(launch);
        self.events.arrow(ArrowEnd::Start, id, place, start)
    }
}

impl TrackState {
    /// Returns the next launch, if it comes before the next slice or there is none.
    fn next_launch(&mut self, timeline: &Timeline, next: Option<&Slice>) -> Option<u32> {
        let launch = &timeline.launches[*self.launches.last()? as usize];
        let is_first = next.is_none_or(|slice| {
            let order = |start: i64, duration: i64| (start, Reverse(duration));
            order(launch.start_ns, launch.duration_ns) < order(slice.start_ns, slice.duration_ns)
        });
        self.launches.pop_if(|_| is_first)
    }
}

/// Returns the extent of a launch as that of a slice.
fn as_slice(launch: &Launch) -> Slice {
    Slice {
        start_ns: launch.start_ns,
        duration_ns: launch.duration_ns,
        ..Slice::default()
    }
}

fn details_of<'t>(timeline: &'t Timeline, slice: &Slice) -> Option<&'t SliceDetails> {
    timeline.details.get(slice.details? as usize)
}
