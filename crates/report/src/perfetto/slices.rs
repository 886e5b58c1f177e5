//! The events of a time line.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Write};

use super::event::{EventBuilder, EventKind, Key};
use super::layout::{Layout, Row};
use super::packets::{Packets, Sequence};
use super::tracks::Tracks;
use super::work::{add_launch, add_work};
use crate::idle::{self, Label};
use crate::in_order::InOrder as _;
use crate::overlap::{OverlapTracks, name_of_track};
use crate::timeline::ProcessorSpan;
use crate::well_known::STEP;
use crate::{KernelGap, Slice, SliceEnding, SliceKind, Timeline};

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
        self.write_idle()?;
        self.write_kernel_gaps()?;
        self.write_counters()?;
        self.write_processor()?;
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
                        Some(step) => event.single_name(&format!("{STEP}#{}", step.number)),
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
        steps.order_by_key(|step| step.start_ns);
        let spans = steps.iter().map(|step| (step.start_ns, step.end_ns));
        self.write_beside("steps", spans, |event, index| {
            let name = format!("step {}", steps[index].number);
            event.category("step").single_name(&name);
        })
    }

    /// Writes slices on a track of their own, in the order of their starts; those that overlap, on further ones below it.
    /// `describe` adds what an event says, given its index.
    fn write_beside(
        &mut self,
        name: &str,
        spans: impl Iterator<Item = (i64, i64)>,
        describe: impl Fn(&mut EventBuilder, usize),
    ) -> io::Result<()> {
        let mut sequence = self.sequence()?;
        let first = self.tracks.further(name, &mut self.packets)?;
        let mut lanes = OverlapTracks::default();
        let mut made = vec![first];
        let mut open = OpenEnds::default();
        for (index, (start, end)) in spans.enumerate() {
            while let Some((end, track)) = open.next_until(start) {
                sequence.event.begin(EventKind::End, track);
                sequence.write(&mut self.packets, end.saturating_add(self.offset))?;
            }
            let end = end.max(start);
            let lane = lanes.take(start, end, |number| number - 1);
            if lane == made.len() {
                let name = name_of_track(name, lane + 1);
                let further = self.tracks.below(&name, Some(first), &mut self.packets)?;
                made.push(further);
            }
            describe(sequence.event.begin(EventKind::Begin, made[lane]), index);
            sequence.write(&mut self.packets, start.saturating_add(self.offset))?;
            open.add(end, index, made[lane]);
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
        replays.order_by_key(|replay| replay.noticed_ns);
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
        let mut of_ranks: BTreeMap<Option<u64>, Vec<&KernelGap>> = BTreeMap::new();
        for gap in &self.timeline.kernel_gaps {
            of_ranks.entry(gap.rank).or_default().push(gap);
        }
        let has_several = of_ranks.len() > 1;
        for (rank, mut gaps) in of_ranks {
            gaps.order_by_key(|gap| gap.start_ns);
            let name = match rank {
                Some(rank) if has_several => format!("kernels not recorded, rank {rank}"),
                _ => "kernels not recorded".to_owned(),
            };
            let end = |gap: &KernelGap| gap.start_ns.saturating_add(gap.duration_ns);
            let spans = gaps.iter().map(|gap| (gap.start_ns, end(gap)));
            self.write_beside(&name, spans, |event, index| {
                event
                    .category("kernel_gap")
                    .single_name(&gaps[index].reason);
            })?;
        }
        Ok(())
    }

    /// Writes why each device was idle.
    fn write_idle(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        for device in &timeline.gpu_idle().devices {
            let reasons = device.reasons(timeline);
            if reasons.is_empty() {
                continue;
            }
            let spans = reasons
                .iter()
                .map(|reason| (reason.start_ns, reason.end_ns));
            self.write_beside(&device.reasons_title(), spans, |event, index| {
                let reason = reasons[index];
                event.category(idle::CATEGORY);
                match reason.label {
                    Label::Name(name) => event.name(timeline, name),
                    Label::Text(text) => event.single_name(text),
                };
                let function = reason
                    .function
                    .and_then(|name| timeline.names.get(name as usize));
                if let Some(function) = function {
                    event.text(Key("function"), &function.text);
                }
            })?;
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

    /// Writes for each thread which part of the time it was on a processor, and ready for one, below the thread.
    fn write_processor(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        let known = timeline.processor.iter();
        // One sample says nothing of the time around it.
        for of_thread in known.filter(|of_thread| of_thread.spans().next().is_some()) {
            let names = ["on a processor", "waits for a processor"];
            let shares: [fn(&ProcessorSpan) -> i64; 2] = [|span| span.running, |span| span.ready];
            for (name, share) in names.into_iter().zip(shares) {
                let track = self
                    .tracks
                    .percent_of(of_thread.track, name, &mut self.packets)?;
                let spans = of_thread.spans();
                let values = spans.map(|span| (span.start, span.percent(share(&span))));
                let end = of_thread.spans().last().map(|last| (last.end, 0.0));
                let mut sequence = self.sequence()?;
                for (at, value) in values.chain(end) {
                    sequence.event.begin(EventKind::Counter, track).value(value);
                    sequence.write(&mut self.packets, at.saturating_add(self.offset))?;
                }
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
