//! The GPU times of scopes on their streams.

use std::collections::HashMap;
use std::convert::Infallible;

use super::Builder;
use crate::cuda::GpuRecord;
use crate::report::export::overlap::{NestedTrack, OverlapTracks};
use crate::report::export::window::counters::InFlight;
use crate::report::export::window::place::{self, GpuSlice, PlacedSlice, SelfTimePiece, SliceSink};
use crate::report::export::window::streams::{TimedScope, for_each_stream};
use crate::report::export::window::track_names::{device_names, stream_name, stream_numbers};
use crate::report::export::window::whole;
use crate::report::{Replay, Slice, SliceKind, Track, TrackKind};
use crate::session::NONE;
use crate::stream_key::StreamKey;

/// The tracks of streams, by device and stream.
pub(super) type StreamTracks = HashMap<(Option<u32>, StreamKey), u32>;

impl Builder<'_> {
    /// Adds the GPU times, and the replays of graphs. Returns the tracks of the streams.
    pub(super) fn add_gpu(&mut self) -> StreamTracks {
        let tracks = self.add_streams();
        let (trace, times) = (self.trace, self.times);
        let mut in_flight = InFlight::new(0, self.last_end());
        let Ok(()) = for_each_stream(trace, times, |stream, items| {
            let gpu = &trace.gpu[stream[0].gpu as usize];
            let Some(own) = tracks.get(&(gpu.device, gpu.stream_key)) else {
                return Ok(());
            };
            let mut writer = StreamBuilder {
                stream,
                items,
                track: *own,
                nested: NestedTrack::default(),
                lanes: OverlapTracks::default(),
                in_flight: &mut in_flight,
                builder: self,
            };
            place::place(items, &mut writer)
        });
        self.add_in_flight(&in_flight);
        for replay in &trace.replays {
            let replay = Replay {
                name: self.name(replay.name),
                track: tracks.get(&(replay.device, replay.stream_key)).copied(),
                noticed_ns: times.of_ticks(replay.cpu_end),
                duration_ns: whole(replay.ns),
                self_ns: whole(replay.own),
            };
            self.timeline.replays.push(replay);
        }
        tracks
    }

    /// Adds a track for each stream.
    fn add_streams(&mut self) -> StreamTracks {
        let numbers = stream_numbers(&self.trace.gpu, |gpu| gpu.device);
        let devices = numbers.keys().filter_map(|(device, _)| *device);
        let names = device_names(devices.map(u64::from));
        let mut tracks = StreamTracks::with_capacity(numbers.len());
        for ((device, stream), number) in numbers {
            let name = device.and_then(|device| names.get(device as usize));
            let track = self.add_track(Track {
                kind: TrackKind::GpuStream,
                name: stream_name(number, stream),
                id: number,
                device,
                device_name: name.cloned().unwrap_or_default(),
                ..Track::default()
            });
            tracks.insert((device, stream), track);
        }
        tracks
    }

    /// Returns the end of what was recorded, as far as it is known before the GPU times are placed.
    fn last_end(&self) -> i64 {
        let (trace, times) = (self.trace, self.times);
        let end = |gpu: &GpuRecord| Some(times.of_unix(gpu.start?).saturating_add(whole(gpu.ns)));
        let ends = trace.gpu.iter().filter_map(end);
        ends.fold(times.of_ticks(trace.meta.closed), i64::max)
    }
}

/// One stream being added.
struct StreamBuilder<'b, 't> {
    stream: &'b [TimedScope],
    items: &'b [GpuSlice],
    track: u32,
    nested: NestedTrack,
    lanes: OverlapTracks<u32>,
    in_flight: &'b mut InFlight,
    builder: &'b mut Builder<'t>,
}

impl StreamBuilder<'_, '_> {
    fn track_for(&mut self, placed: PlacedSlice) -> u32 {
        let (start, end) = (placed.start, placed.end);
        if !placed.is_beside && self.nested.add(start, end, |_| ((), ())).is_some() {
            return self.track;
        }
        let (builder, own) = (&mut *self.builder, self.track);
        self.lanes.take(start, end, |number| {
            let mut track = builder.timeline.tracks[own as usize].clone();
            track.name = format!("stream {}, overlapping {number}", track.id);
            builder.add_track(track)
        })
    }
}

impl SliceSink for StreamBuilder<'_, '_> {
    type Error = Infallible;

    fn item(&mut self, placed: PlacedSlice) -> Result<(), Infallible> {
        let track = self.track_for(placed);
        let PlacedSlice {
            item, start, end, ..
        } = placed;
        self.in_flight.add(self.items[item].host.0, end);
        let TimedScope { gpu, scope } = self.stream[item];
        let gpu = &self.builder.trace.gpu[gpu as usize];
        let scope = self.builder.slice_of[scope as usize];
        let measured = whole(gpu.ns);
        let slice = Slice {
            track,
            name: self.builder.name(gpu.name),
            start_ns: start,
            duration_ns: end - start,
            self_ns: whole(gpu.own).clamp(0, measured.max(0)),
            measured_ns: (measured != end - start).then_some(measured),
            kind: SliceKind::GpuScope,
            parent: (scope != NONE).then_some(scope),
            ..Slice::default()
        };
        self.builder.timeline.slices.push(slice);
        Ok(())
    }

    fn piece(&mut self, _: SelfTimePiece) -> Result<(), Infallible> {
        Ok(())
    }
}
