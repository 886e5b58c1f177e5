//! Kernels, copies and fills on their streams, inside the GPU times of scopes, and waits for the device.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::io::{self, Write};

use super::annotation::Annotation;
use super::host::id_of;
use super::launches::correlation_of;
use super::work_fields::with_fields;
use super::{TraceWriter, is_drawn};
use crate::gpu_work::GpuWorkKind;
use crate::report::export::chrome::event_writer::{ArrowEnd, Track};
use crate::report::export::overlap::{NestedTrack, OverlapTracks};
use crate::report::export::window::around_work::{WorkSpan, extent_around, moved_around};
use crate::report::export::window::place::{self, GpuSlice, PlacedSlice, SelfTimePiece, SliceSink};
use crate::report::export::window::streams::{TimedScope, around, for_each_stream};
use crate::report::export::window::whole;
use crate::report::export::window::work_streams::WorkStream;
use crate::session::{Trace, WorkRecord};

/// The work of a window by device and stream.
type ByStream<'t> = BTreeMap<(u64, WorkStream), Vec<&'t WorkRecord>>;

/// The GPU times of scopes on one stream.
struct StreamScopes<'s> {
    stream: &'s [TimedScope],
    items: &'s [GpuSlice],
}

/// A slice of a stream.
struct Drawn {
    start: i64,
    end: i64,
    /// `false` if it would cross others on the stream's own track.
    is_on_own: bool,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// The GPU time of a scope, by its index among those of the stream.
    Scope(usize),
    /// Work, by its index among that of the stream.
    Work(usize),
}

impl<W: Write> TraceWriter<'_, W> {
    pub(super) fn write_streams(&mut self) -> io::Result<()> {
        let (trace, times) = (self.trace, self.times);
        let mut by_stream = ByStream::new();
        for work in trace.work.on_streams() {
            let stream = (work.details.device.into(), WorkStream::of(work));
            by_stream.entry(stream).or_default().push(work);
        }
        for_each_stream(trace, times, |stream, items| {
            let gpu = &trace.gpu[stream[0].gpu as usize];
            let place = (self.tracks.device(gpu), WorkStream::Known(gpu.stream_key));
            let work = by_stream.remove(&place).unwrap_or_default();
            let own = self.tracks.stream(place.0, place.1);
            self.write_stream(own, &StreamScopes { stream, items }, &work)
        })?;
        let none = StreamScopes {
            stream: &[],
            items: &[],
        };
        for ((device, stream), work) in by_stream {
            let own = self.tracks.stream(device, stream);
            self.write_stream(own, &none, &work)?;
        }
        Ok(())
    }

    fn write_stream(
        &mut self,
        track: Track,
        scopes: &StreamScopes<'_>,
        work: &[&WorkRecord],
    ) -> io::Result<()> {
        let mut work: Vec<(WorkSpan, &WorkRecord)> = self.spans(scopes, work).collect();
        work.sort_by_key(|(span, _)| (span.start, span.end));
        let mut drawn = Vec::with_capacity(scopes.items.len() + work.len());
        // Nodes of a graph may run at once, although they have one stream.
        let mut own: Vec<WorkSpan> = Vec::with_capacity(work.len());
        for (index, (span, _)) in work.iter().enumerate() {
            let is_on_own = own.last().is_none_or(|last| last.end <= span.start);
            if is_on_own {
                own.push(*span);
            }
            drawn.push(Drawn {
                start: span.start,
                end: span.end,
                is_on_own,
                what: What::Work(index),
            });
        }
        let spans: Vec<WorkSpan> = work.iter().map(|(span, _)| *span).collect();
        drawn.extend(self.annotations(scopes, &spans, &own));
        // Around what begins with it.
        drawn.sort_by_key(|slice| {
            let is_work = matches!(slice.what, What::Work(_));
            (slice.start, Reverse(slice.end), is_work)
        });
        let mut nested = NestedTrack::default();
        let mut lanes = OverlapTracks::default();
        for slice in drawn {
            let (start, end) = (slice.start, slice.end);
            let is_on_own = slice.is_on_own && nested.add(start, end, |_| ((), ())).is_some();
            let place = if is_on_own {
                track
            } else {
                let make = |number| self.tracks.beside_stream(track, number).tid;
                let tid = lanes.take(start, end, make);
                Track { tid, ..track }
            };
            match slice.what {
                What::Scope(item) => {
                    let (of, measured) = (scopes.stream[item], scopes.items[item]);
                    self.write_annotation(of, measured, place, (start, end))?;
                }
                What::Work(index) => self.write_work(work[index].1, track, place, (start, end))?,
            }
        }
        Ok(())
    }

    /// Returns the work with its times, and with the innermost scope that launched it and has a GPU time on the stream.
    fn spans<'w>(
        &self,
        scopes: &StreamScopes<'_>,
        work: &[&'w WorkRecord],
    ) -> impl Iterator<Item = (WorkSpan, &'w WorkRecord)> {
        let (trace, times) = (self.trace, self.times);
        let items = scopes.stream.iter().enumerate();
        let item_of: HashMap<u32, usize> = items.map(|(item, timed)| (timed.scope, item)).collect();
        work.iter().filter_map(move |work| {
            let (start, end) = work.span?;
            let start = times.of_unix(start);
            let span = WorkSpan {
                start,
                end: times.of_unix(end).max(start),
                item: item_around(trace, work, &item_of),
            };
            Some((span, *work))
        })
    }

    /// Places the GPU times of scopes around the work of their stream; `own` is the work on the stream's own track.
    fn annotations(
        &mut self,
        scopes: &StreamScopes<'_>,
        work: &[WorkSpan],
        own: &[WorkSpan],
    ) -> Vec<Drawn> {
        let items = moved_around(scopes.items, work);
        let mut placed = PlacedItems::default();
        let Ok(()) = place::place(&items, &mut placed);
        let gpu = |item: usize| &self.trace.gpu[scopes.stream[item].gpu as usize];
        placed.0.retain(|placed| is_drawn(gpu(placed.item)));
        let drawn = placed.0.into_iter().map(|placed| {
            let extent = (!placed.is_beside).then(|| extent_around(placed, &items, own));
            let extent = extent.flatten();
            let (start, end) = extent.unwrap_or((placed.start, placed.end));
            Drawn {
                start,
                end,
                is_on_own: extent.is_some(),
                what: What::Scope(placed.item),
            }
        });
        drawn.collect()
    }

    fn write_annotation(
        &mut self,
        of: TimedScope,
        measured: GpuSlice,
        track: Track,
        (start, end): (i64, i64),
    ) -> io::Result<()> {
        let gpu = &self.trace.gpu[of.gpu as usize];
        self.in_flight.add(measured.host.0, end);
        let id = match self.trace.scopes.get(of.scope as usize) {
            Some(scope) if scope.has_cpu => id_of(of.scope as usize),
            _ => 0,
        };
        let slice = Annotation {
            measured,
            self_ns: whole(gpu.own),
            id,
            track,
            start,
            length: end - start,
        };
        slice.write(&mut self.events, &self.names, gpu.name)
    }

    /// Writes a kernel, a copy or a fill at its place, which may be beside the stream, and the end of the arrow to it.
    fn write_work(
        &mut self,
        work: &WorkRecord,
        stream: Track,
        place: Track,
        (start, end): (i64, i64),
    ) -> io::Result<()> {
        let is_known = (work.launch as usize) < self.trace.work.launches.len();
        let (id, correlation) = if is_known {
            (self.id_of_launch(work.launch), correlation_of(work.launch))
        } else {
            (0, self.write_unknown_launch(work, start)?)
        };
        let (category, name) = self.work_names.of(work);
        let event = self.events.slice(category, name, place, start, end - start);
        let event = event
            .whole("External id", id)
            .whole("device", stream.pid)
            .whole("context", work.details.context.into())
            .whole("stream", stream.tid)
            .whole("correlation", correlation);
        with_fields(event, &work.details, end - start, self.properties).end()?;
        if is_known && self.launches.take_arrow(work.launch, start) {
            self.events
                .arrow(ArrowEnd::Finish, correlation, place, start)?;
        }
        Ok(())
    }

    /// Writes the waits for each device. They have no `stream`: HTA counts what has one as a kernel.
    pub(super) fn write_waits(&mut self) -> io::Result<()> {
        let (trace, times) = (self.trace, self.times);
        let mut lanes: BTreeMap<u64, OverlapTracks<u64>> = BTreeMap::new();
        let mut waits: Vec<(i64, i64, &WorkRecord)> = Vec::new();
        for work in &trace.work.work {
            if let (GpuWorkKind::Synchronization(_), Some((start, end))) =
                (work.details.kind, work.span)
            {
                let start = times.of_unix(start);
                waits.push((start, times.of_unix(end).max(start), work));
            }
        }
        waits.sort_by_key(|(start, end, _)| (*start, *end));
        for (start, end, work) in waits {
            let device = u64::from(work.details.device);
            let make = |number| self.tracks.waits(device, number).tid;
            let tid = lanes.entry(device).or_default().take(start, end, make);
            let (category, name) = self.work_names.of(work);
            let place = Track { pid: device, tid };
            let event = self.events.slice(category, name, place, start, end - start);
            let event = event
                .quoted("cuda_sync_kind", name)
                .whole("device", device)
                .whole("context", work.details.context.into());
            event
                .whole("waits for stream", work.details.stream.into())
                .end()?;
        }
        Ok(())
    }
}

/// Returns the innermost scope with a GPU time on the stream around the launch of some work.
fn item_around(trace: &Trace, work: &WorkRecord, item_of: &HashMap<u32, usize>) -> usize {
    let scope = trace.work.scope_of(work);
    let scope = scope.and_then(|scope| u32::try_from(scope).ok());
    let scope = scope.filter(|scope| (*scope as usize) < trace.nodes.len());
    let found = scope.and_then(|scope| {
        let mut outward = std::iter::once(scope).chain(around(trace, scope));
        outward.find_map(|scope| item_of.get(&scope))
    });
    found.copied().unwrap_or(place::NONE)
}

/// The positions of all items of a stream.
#[derive(Default)]
struct PlacedItems(Vec<PlacedSlice>);

impl SliceSink for PlacedItems {
    type Error = Infallible;

    fn item(&mut self, placed: PlacedSlice) -> Result<(), Infallible> {
        self.0.push(placed);
        Ok(())
    }

    fn piece(&mut self, _: SelfTimePiece) -> Result<(), Infallible> {
        Ok(())
    }
}
