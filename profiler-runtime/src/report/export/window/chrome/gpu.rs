//! GPU times of scopes on their streams, as annotations and as kernels.
//!
//! Scopes are measured, not kernels, but the tools count kernels: TensorBoard's trace plugin adds up the kernels
//! launched by an operator, HTA the busy time of a stream. So each stretch of a stream in which one scope is the
//! innermost is written as one event of the category `kernel` with the scope's name. Each has a launch of length zero
//! in the scope on the CPU; an arrow leads from the scope to the first of them. Together they are exactly the scope's
//! self time, unless scopes of several threads or futures share a stream: then each instant belongs to one scope here,
//! while the tables count it for every open scope. All of these events have `"scope": true`.

use std::collections::HashMap;
use std::io::{self, Write};

use super::event_writer::{ArrowEnd, EventWriter, Quoted, Track};
use super::host::id_of;
use super::names::Names;
use super::times::{ReadEnd, length};
use super::tracks::Tracks;
use super::{TraceWriter, is_drawn};
use crate::cuda::GpuRecord;
use crate::report::export::overlap::{NestedTrack, OverlapTracks};
use crate::report::export::window::counters::InFlight;
use crate::report::export::window::place::{self, GpuSlice, PlacedSlice, SelfTimePiece, SliceSink};
use crate::report::export::window::streams::{TimedScope, for_each_stream};
use crate::report::export::window::whole;
use crate::session::Trace;

/// The correlation before the first one. HTA (0.5) stores event indices in a column as wide as the correlations need,
/// and fails if 16 bits suffice for these but not for the indices.
const CORRELATIONS: u64 = 100_000;

impl<W: Write> TraceWriter<'_, W> {
    pub(super) fn write_gpu(&mut self) -> io::Result<()> {
        let (trace, mut correlation) = (self.trace, CORRELATIONS);
        for_each_stream(trace, self.times, |stream, items| {
            let mut writer = StreamWriter {
                trace,
                stream,
                items,
                track: self.tracks.stream(&trace.gpu[stream[0].gpu as usize]),
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
        })?;
        self.write_replays()
    }

    /// The time of a replay is not known; write the time at which it was noticed.
    fn write_replays(&mut self) -> io::Result<()> {
        if self.trace.replays.is_empty() {
            return Ok(());
        }
        let track = self.tracks.replays();
        for replay in &self.trace.replays {
            let at = self.times.of_ticks(replay.cpu_end);
            let name = self.names.get(replay.name);
            let event = self.events.instant("replay", name, track, at);
            let event = self.names.with_full_name(event, replay.name);
            event
                .signed("ns", whole(replay.ns))
                .signed("self_ns", whole(replay.own))
                .text("stream", &replay.stream_key.to_string())
                .end()?;
        }
        Ok(())
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
        let name = self.names.get(gpu.name);
        let event = self
            .events
            .slice("gpu_user_annotation", name, track, start, length);
        let mut event = event
            .whole("External id", id)
            .signed("uncertainty_ns", measured.uncertainty);
        if (start - measured.start).abs() > measured.uncertainty {
            event = event.signed("moved_ns", start - measured.start);
        }
        if end - start != measured.length {
            event = event.signed("ns", measured.length);
        }
        self.names.with_full_name(event, gpu.name).end()
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
