//! Kernels, copies and fills on their streams, the GPU times of scopes beside them, and waits for the device.

use std::collections::BTreeMap;
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
use crate::report::export::window::place::{self, GpuSlice, PlacedSlice, SelfTimePiece, SliceSink};
use crate::report::export::window::streams::{TimedScope, for_each_stream};
use crate::report::export::window::whole;
use crate::report::export::window::work_streams::WorkStream;
use crate::session::WorkRecord;

/// The work of a window by device and stream.
type ByStream<'t> = BTreeMap<(u64, WorkStream), Vec<&'t WorkRecord>>;

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
            let key = WorkStream::Known(gpu.stream_key);
            let own = self.tracks.stream(self.tracks.device(gpu), key);
            self.write_scopes_of(own, stream, items)
        })?;
        for ((device, stream), work) in by_stream {
            let own = self.tracks.stream(device, stream);
            self.write_works(own, work)?;
        }
        Ok(())
    }

    /// Writes the work of a stream on its own track. Nodes of a graph may run at once, although they have one stream.
    fn write_works(&mut self, track: Track, mut work: Vec<&WorkRecord>) -> io::Result<()> {
        let times = self.times;
        work.sort_by_key(|work| work.span);
        let mut own_end = i64::MIN;
        let mut lanes = OverlapTracks::default();
        for work in work {
            let Some((start, end)) = work.span else {
                continue;
            };
            let start = times.of_unix(start);
            let end = times.of_unix(end).max(start);
            let place = if own_end <= start {
                own_end = end;
                track
            } else {
                let make = |number| self.tracks.beside_stream(track, number).tid;
                let tid = lanes.take(start, end, make);
                Track { tid, ..track }
            };
            self.write_work(work, track, place, (start, end))?;
        }
        Ok(())
    }

    /// Writes the GPU times of scopes on tracks below that of their stream: the times of kernels are exact, those of scopes
    /// are moved within their uncertainty, so that on one track they could cross.
    fn write_scopes_of(
        &mut self,
        stream: Track,
        scopes: &[TimedScope],
        items: &[GpuSlice],
    ) -> io::Result<()> {
        let mut placed = PlacedItems::default();
        let Ok(()) = place::place(items, &mut placed);
        let mut own = None;
        let mut nested = NestedTrack::default();
        let mut lanes = OverlapTracks::default();
        for slice in placed.0 {
            let of = scopes[slice.item];
            if !is_drawn(&self.trace.gpu[of.gpu as usize]) {
                continue;
            }
            let (start, end) = (slice.start, slice.end);
            let is_nested = !slice.is_beside && nested.add(start, end, |_| ((), ())).is_some();
            let track = if is_nested {
                *own.get_or_insert_with(|| self.tracks.scopes_of_stream(stream, 0))
            } else {
                let make = |number| self.tracks.scopes_of_stream(stream, number).tid;
                let tid = lanes.take(start, end, make);
                Track { tid, ..stream }
            };
            self.write_annotation(of, items[slice.item], track, (start, end))?;
        }
        Ok(())
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
