//! GPU times of scopes on their streams, as annotations and as kernels, for windows whose kernels were not recorded.
//!
//! Then scopes are measured, not kernels, but the tools count kernels: TensorBoard's trace plugin adds up the kernels
//! launched by an operator, HTA the busy time of a stream. So each stretch of a stream in which one scope is the
//! innermost is written as one event of the category `kernel` with the scope's name. Each has a launch of length zero
//! in the scope on the CPU; an arrow leads from the scope to the first of them. Together they are exactly the scope's
//! self time, unless scopes of several threads or futures share a stream: then each instant belongs to one scope here,
//! while the tables count it for every open scope. All of these events have `"scope": true`.

use std::collections::HashMap;
use std::io::{self, Write};

use super::annotation::Annotation;
use super::host::id_of;
use super::names::Names;
use super::tracks::Tracks;
use super::{TraceWriter, is_drawn};
use crate::cuda::GpuRecord;
use crate::report::export::chrome::CORRELATIONS;
use crate::report::export::chrome::event_writer::{ArrowEnd, EventWriter, Quoted, Track};
use crate::report::export::chrome::times::{ReadEnd, length};
use crate::report::export::overlap::{NestedTrack, OverlapTracks};
use crate::report::export::window::counters::InFlight;
use crate::report::export::window::place::{self, GpuSlice, PlacedSlice, SelfTimePiece, SliceSink};
use crate::report::export::window::streams::{TimedScope, for_each_stream};
use crate::report::export::window::whole;
use crate::report::export::window::work_streams::WorkStream;
use crate::session::Trace;

impl<W: Write> TraceWriter<'_, W> {
    pub(super) fn write_stand_ins(&mut self) -> io::Result<()> {
        let (trace, mut correlation) = (self.trace, CORRELATIONS);
        for_each_stream(trace, self.times, |stream, items| {
            let mut writer = StreamWriter {
                trace,
                stream,
                items,
                track: self.track_of_gpu(&trace.gpu[stream[0].gpu as usize]),
                lanes: OverlapTracks::default(),
                drawn: NestedTrack::default(),
                beside: HashMap::new(),
                names: &self.names,
                category: self.launch_category,
                track_of_gpu: &self.track_of_gpu,
                tracks: &mut self.tracks,
                events: &mut self.events,
                in_flight: &mut self.in_flight,
                correlation,
            };
            place::place(items, &mut writer)?;
            correlation = writer.correlation;
            Ok::<(), io::Error>(())
        })
    }

    fn track_of_gpu(&self, gpu: &GpuRecord) -> Track {
        let device = self.tracks.device(gpu);
        self.tracks
            .stream(device, WorkStream::Known(gpu.stream_key))
    }
}

/// One stream being written.
struct StreamWriter<'d, 't, W> {
    trace: &'t Trace,
    stream: &'d [TimedScope],
    items: &'d [GpuSlice],
    track: Track,
    lanes: OverlapTracks<u64>,
    /// The slices on the stream's own track, with their ends as readers compute them. Threads that share a stream may
    /// cause slices that cross; readers drop those.
    drawn: NestedTrack<ReadEnd>,
    /// The tracks of items that are drawn beside the stream, with their ends as readers compute them. Their self times
    /// are drawn inside them.
    beside: HashMap<usize, (Track, ReadEnd)>,
    names: &'d Names,
    category: &'static str,
    track_of_gpu: &'d [u64],
    tracks: &'d mut Tracks,
    events: &'d mut EventWriter<W>,
    in_flight: &'d mut InFlight,
    correlation: u64,
}

impl<'t, W> StreamWriter<'_, 't, W> {
    /// Returns the stream's own track if the item can be drawn there, or else a track beside it that is free from
    /// `start` to `end`; and the length to write.
    fn track_for(&mut self, placed: PlacedSlice) -> (Track, i64) {
        let PlacedSlice {
            item,
            start,
            end,
            is_beside,
        } = placed;
        let (tracks, stream) = (&mut *self.tracks, self.track);
        if !is_beside && let Some(length) = take(&mut self.drawn, start, end) {
            return (stream, length);
        }
        let make = |number| tracks.beside_stream(stream, number).tid;
        let tid = self.lanes.take(start, end, make);
        let track = Track { tid, ..stream };
        let (length, read) = length(start, end, ReadEnd::NEVER);
        self.beside.insert(item, (track, read));
        (track, length)
    }

    /// Returns the track of a piece's item, and the length to write.
    fn track_of(&mut self, piece: SelfTimePiece) -> (Track, i64) {
        let SelfTimePiece {
            item, start, end, ..
        } = piece;
        if let Some((track, around)) = self.beside.get(&item) {
            return (*track, length(start, end, *around).0);
        }
        let on_stream = take(&mut self.drawn, start, end);
        (self.track, on_stream.unwrap_or(end - start))
    }

    fn gpu(&self, item: usize) -> &'t GpuRecord {
        &self.trace.gpu[self.stream[item].gpu as usize]
    }

    /// Returns the `External id` of the scope; 0 if CPU times are not recorded.
    fn id(&self, item: usize) -> u64 {
        if self.trace.meta.options.cpu {
            id_of(self.stream[item].scope as usize)
        } else {
            0
        }
    }
}

/// Returns the length to write for a slice, or `None` if it would cross another one.
fn take(track: &mut NestedTrack<ReadEnd>, start: i64, end: i64) -> Option<i64> {
    track.add(start, end, |around| {
        length(start, end, around.unwrap_or(ReadEnd::NEVER))
    })
}

impl<W: Write> SliceSink for StreamWriter<'_, '_, W> {
    type Error = io::Error;

    fn item(&mut self, placed: PlacedSlice) -> io::Result<()> {
        let PlacedSlice {
            item, start, end, ..
        } = placed;
        if !is_drawn(self.gpu(item)) {
            return Ok(());
        }
        let (track, length) = self.track_for(placed);
        let (gpu, id, measured) = (self.gpu(item), self.id(item), self.items[item]);
        self.in_flight.add(measured.host.0, end);
        let annotation = Annotation {
            measured,
            self_ns: whole(gpu.own),
            id,
            track,
            start,
            length,
        };
        annotation.write(self.events, self.names, gpu.name)
    }

    fn piece(&mut self, piece: SelfTimePiece) -> io::Result<()> {
        self.correlation += 1;
        let (id, correlation, stream) = (self.id(piece.item), self.correlation, self.track);
        let gpu = self.gpu(piece.item);
        let tid = self
            .track_of_gpu
            .get(self.stream[piece.item].gpu as usize)
            .copied();
        let host = Track {
            pid: self.tracks.host,
            tid: tid.unwrap_or_default(),
        };
        let name = Quoted::new(r#""cudaLaunchKernel""#);
        let event = self
            .events
            .slice(self.category, name, host, piece.launched, 0);
        event
            .whole("External id", id)
            .whole("correlation", correlation)
            .end()?;
        // An arrow must not lead back in time.
        let has_arrow = piece.is_first && piece.launched <= piece.start;
        if has_arrow {
            self.events
                .arrow(ArrowEnd::Start, correlation, host, piece.launched)?;
        }
        let name = self.names.get(gpu.name);
        let (track, length) = self.track_of(piece);
        let event = self
            .events
            .slice("kernel", name, track, piece.start, length);
        let event = event
            .whole("External id", id)
            .whole("device", stream.pid)
            .whole("stream", stream.tid)
            .whole("correlation", correlation)
            .set("scope");
        self.names.with_full_name(event, gpu.name).end()?;
        if has_arrow {
            self.events
                .arrow(ArrowEnd::Finish, correlation, track, piece.start)?;
        }
        Ok(())
    }
}
