//! The events of a time line.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use super::event::{EventBuilder, EventKind, Key};
use super::layout::{Layout, Row};
use super::packets::{Packets, Sequence};
use super::tracks::Tracks;
use super::work::{add_launch, add_work};
use crate::overlap::OverlapTracks;
use crate::{Slice, SliceEnding, SliceKind, Timeline};

/// Writes all events, each kind as a sequence.
pub(super) struct EventWriter<'t, W> {
    pub(super) timeline: &'t Timeline,
    pub(super) layout: Layout,
    pub(super) tracks: Tracks<'t>,
    pub(super) packets: Packets<W>,
    /// The time from the first event to the start of the time line.
    pub(super) offset: i64,
}

/// The ends of the open slices: the earliest first, of those at one time the innermost first; with their tracks.
#[derive(Default)]
struct OpenEnds(BinaryHeap<Reverse<(i64, Reverse<usize>, u64)>>);

impl OpenEnds {
    fn add(&mut self, end: i64, order: usize, track: u64) {
        self.0.push(Reverse((end, Reverse(order), track)));
    }

    /// Removes the first end up to a time.
    fn next_until(&mut self, time: i64) -> Option<(i64, u64)> {
        let Reverse((end, _, track)) = *self.0.peek()?;
        (end <= time).then(|| self.0.pop())?;
        Some((end, track))
    }
}

impl<W: Write> EventWriter<'_, W> {
    pub(super) fn write_all(&mut self) -> io::Result<()> {
        self.write_slices()?;
        self.write_steps()?;
        self.write_replays()?;
        self.write_kernel_gaps()?;
        self.write_counters()?;
        self.write_missing()
    }

    fn sequence(&mut self) -> io::Result<Sequence> {
        let start = self.timeline.start_unix_ns.saturating_sub(self.offset);
        self.packets.sequence(start)
    }

    fn write_slices(&mut self) -> io::Result<()> {
        let (timeline, offset) = (self.timeline, self.offset);
        let steps = timeline.steps_of_slices();
        let mut sequence = self.sequence()?;
        let mut open = OpenEnds::default();
        for order in 0..self.layout.order.len() {
            let index = self.layout.order[order];
            let Some(row) = Row::of(timeline, index) else {
                continue;
            };
            let (start, end) = row.extent();
            while let Some((end, track)) = open.next_until(start) {
                sequence.event.begin(EventKind::End, track);
                sequence.write(&mut self.packets, end.saturating_add(offset))?;
            }
            let track = match self.layout.beside.get(&index) {
                Some(lane) => self.tracks.beside(row.track(), *lane, &mut self.packets)?,
                None => self.tracks.number(row.track()),
            };
            let event = sequence.event.begin(EventKind::Begin, track);
            match row {
                Row::Slice(slice) => {
                    event.category(category(slice.kind));
                    match steps.get(&index) {
                        Some(step) => event.single_name(&format!("ProfilerStep#{}", step.number)),
                        None => event.name(timeline, slice.name),
                    };
                    add_arguments(event, timeline, slice);
                }
                Row::Launch(launch) => {
                    event.category("launch").name(timeline, launch.name);
                    add_launch(event, launch);
                }
            }
            for (_, to) in self.layout.arrows_from(index) {
                event.flow(arrow(*to));
            }
            if self.layout.has_arrow_to(index) {
                event.ending_flow(arrow(index));
            }
            sequence.write(&mut self.packets, start.saturating_add(offset))?;
            open.add(end, order, track);
        }
        while let Some((end, track)) = open.next_until(i64::MAX) {
            sequence.event.begin(EventKind::End, track);
            sequence.write(&mut self.packets, end.saturating_add(offset))?;
        }
        Ok(())
    }

    /// Steps are on no thread: they may end anywhere between the scopes of one.
    fn write_steps(&mut self) -> io::Result<()> {
        let mut steps = self.timeline.steps.clone();
        steps.retain(|step| self.timeline.slice_of(step.slice).is_none());
        if steps.is_empty() {
            return Ok(());
        }
        steps.sort_by_key(|step| step.start_ns);
        let mut sequence = self.sequence()?;
        let first = self.tracks.further("steps", &mut self.packets)?;
        let mut lanes = OverlapTracks::default();
        let mut made = vec![first];
        let mut open = OpenEnds::default();
        for (order, step) in steps.iter().enumerate() {
            while let Some((end, track)) = open.next_until(step.start_ns) {
                sequence.event.begin(EventKind::End, track);
                sequence.write(&mut self.packets, end.saturating_add(self.offset))?;
            }
            let end = step.end_ns.max(step.start_ns);
            let lane = lanes.take(step.start_ns, end, |number| number - 1);
            if lane == made.len() {
                let name = format!("steps, overlapping {lane}");
                let further = self.tracks.below(&name, Some(first), &mut self.packets)?;
                made.push(further);
            }
            let event = sequence.event.begin(EventKind::Begin, made[lane]);
            event
                .category("step")
                .single_name(&format!("step {}", step.number));
            sequence.write(&mut self.packets, step.start_ns.saturating_add(self.offset))?;
            open.add(end, order, made[lane]);
        }
        while let Some((end, track)) = open.next_until(i64::MAX) {
            sequence.event.begin(EventKind::End, track);
            sequence.write(&mut self.packets, end.saturating_add(self.offset))?;
        }
        Ok(())
    }

    fn write_replays(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        let mut replays: Vec<_> = timeline.replays.iter().collect();
        if replays.is_empty() {
            return Ok(());
        }
        replays.sort_by_key(|replay| replay.noticed_ns);
        let name = "replays of graphs, when they were noticed";
        let track = self.tracks.further(name, &mut self.packets)?;
        let mut sequence = self.sequence()?;
        for replay in replays {
            let event = sequence.event.begin(EventKind::Instant, track);
            event.category("replay").name(timeline, replay.name);
            event.integer(Key("ns"), replay.duration_ns);
            event.integer(Key("self_ns"), replay.self_ns);
            let stream = replay
                .track
                .and_then(|track| timeline.tracks.get(track as usize));
            if let Some(stream) = stream {
                event.text(Key("stream"), &stream.name);
            }
            sequence.write(
                &mut self.packets,
                replay.noticed_ns.saturating_add(self.offset),
            )?;
        }
        Ok(())
    }

    fn write_kernel_gaps(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        let mut sequence = self.sequence()?;
        for gap in &timeline.kernel_gaps {
            // One track for each: those of several ranks may overlap.
            let track = self
                .tracks
                .further("kernels not recorded", &mut self.packets)?;
            let event = sequence.event.begin(EventKind::Begin, track);
            event.category("kernel_gap").single_name(&gap.reason);
            let start = gap.start_ns.saturating_add(self.offset);
            sequence.write(&mut self.packets, start)?;
            sequence.event.begin(EventKind::End, track);
            let end = start.saturating_add(gap.duration_ns.max(0));
            sequence.write(&mut self.packets, end)?;
        }
        Ok(())
    }

    fn write_counters(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        for counter in &timeline.counters {
            let track = self.tracks.counter(counter, &mut self.packets)?;
            let mut sequence = self.sequence()?;
            for (at, value) in &counter.samples {
                sequence
                    .event
                    .begin(EventKind::Counter, track)
                    .value(*value);
                sequence.write(&mut self.packets, at.saturating_add(self.offset))?;
            }
        }
        Ok(())
    }

    /// Marks the end of the window with what is missing.
    fn write_missing(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        if timeline.missing.is_empty() {
            return Ok(());
        }
        let track = self.tracks.further("missing", &mut self.packets)?;
        let mut sequence = self.sequence()?;
        for (what, count) in &timeline.missing {
            let event = sequence.event.begin(EventKind::Instant, track);
            event.category("missing");
            match count {
                0 => event.single_name(what),
                _ => event.single_name(&format!("{count} {what}")),
            };
            sequence.write(
                &mut self.packets,
                timeline.duration_ns.saturating_add(self.offset),
            )?;
        }
        Ok(())
    }
}

/// Returns the number of the arrow that leads to a slice.
fn arrow(to: u32) -> u64 {
    u64::from(to) + 1
}

fn category(kind: SliceKind) -> &'static str {
    match kind {
        SliceKind::Call => "scope",
        SliceKind::FuturePoll => "poll",
        SliceKind::AsyncCall => "future",
        SliceKind::GpuScope => "gpu_scope",
        SliceKind::GpuWork => "gpu_work",
        SliceKind::GpuRange => "gpu_range",
    }
}

fn add_arguments(event: &mut EventBuilder, timeline: &Timeline, slice: &Slice) {
    match slice.ending {
        SliceEnding::Returned => {}
        SliceEnding::Panicked => {
            event.flag(Key("panicked"));
        }
        SliceEnding::Dropped => {
            event.flag(Key("dropped"));
        }
    }
    // Perfetto knows the self times of all others.
    if slice.kind == SliceKind::AsyncCall {
        event.integer(Key("self_ns"), slice.self_ns);
    }
    if let Some(bytes) = slice.allocated_bytes.filter(|bytes| *bytes > 0) {
        event.integer(
            Key("allocated bytes"),
            i64::try_from(bytes).unwrap_or(i64::MAX),
        );
    }
    if let Some(bytes) = slice.device_bytes.filter(|bytes| *bytes != 0) {
        event.integer(Key("CUDA bytes"), bytes);
    }
    if let Some(index) = slice.shapes {
        event.shapes(Key("shapes"), timeline, index);
    }
    let work = slice.work.and_then(|work| timeline.work.get(work as usize));
    if let Some(work) = work {
        add_work(event, work, slice.duration_ns);
    }
}
