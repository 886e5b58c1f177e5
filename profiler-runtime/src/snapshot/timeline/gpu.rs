//! The GPU times of scopes on their streams.

use std::cmp::Reverse;
use std::collections::HashMap;

use profiler_report::internal::{
    GpuSlice, NestedTrack, OverlapTracks, PlacedSlice, StreamKey, place,
};
use profiler_report::{Replay, Slice, SliceKind, Track, TrackKind};

use super::Builder;
use crate::cuda::GpuRecord;
use crate::session::NONE;
use crate::snapshot::window::counters::InFlight;
use crate::snapshot::window::streams::{TimedScope, for_each_stream};
use crate::snapshot::window::track_names::{device_names, stream_name, stream_numbers};
use crate::snapshot::window::whole;

/// The tracks of streams, by device and stream.
pub(super) type StreamTracks = HashMap<(Option<u32>, StreamKey), u32>;

impl Builder<'_> {
    /// Adds the GPU times, and the replays of graphs. Returns the tracks of the streams.
    pub(super) fn add_gpu(&mut self) -> StreamTracks {
        let tracks = self.add_streams();
        let (trace, times) = (self.trace, self.times);
        let mut in_flight = InFlight::new(self.last_end());
        let first = self.timeline.slices.len();
        for_each_stream(trace, times, |stream, items| {
            let gpu = &trace.gpu[stream[0].gpu as usize];
            let Some(own) = tracks.get(&(gpu.device, gpu.stream_key)) else {
                return;
            };
            let (mut nested, mut lanes) = (NestedTrack::default(), OverlapTracks::default());
            for placed in place(items) {
                let (start, end) = (placed.start, placed.end);
                let fits = !placed.is_beside && nested.add(start, end);
                let place = if fits {
                    *own
                } else {
                    lanes.take(start, end, |number| self.add_lane(*own, number))
                };
                let item = &items[placed.item];
                in_flight.add(item.host, end);
                self.add_gpu_slice(stream[placed.item], item, place, placed);
            }
        });
        self.add_unplaced(&tracks, first);
        self.add_in_flight(&in_flight);
        for replay in &trace.replays {
            let replay = Replay {
                name: self.name(replay.name),
                track: tracks.get(&(replay.device, replay.stream_key)).copied(),
                noticed_ns: times.of_ticks(replay.cpu_end),
                duration_ns: whole(replay.ns),
                self_ns: whole(replay.own),
                non_exhaustive: (),
            };
            self.timeline.replays.push(replay);
        }
        tracks
    }

    /// Adds the GPU times whose start is not known, and puts all from `first` on in order.
    fn add_unplaced(&mut self, tracks: &StreamTracks, first: usize) {
        let trace = self.trace;
        let before = self.timeline.slices.len();
        for (scope, node) in (0..).zip(&trace.nodes) {
            let gpu = trace.gpu.get(node.gpu as usize);
            let Some(gpu) = gpu.filter(|gpu| gpu.loss.is_none() && gpu.start.is_none()) else {
                continue;
            };
            let Some(stream) = tracks.get(&(gpu.device, gpu.stream_key)) else {
                continue;
            };
            let start = self.times.of_ticks(trace.scopes[scope as usize].start);
            let slice = self.gpu_slice(gpu, scope, *stream, (start, start));
            self.timeline.slices.push(slice);
        }
        if self.timeline.slices.len() > before {
            let slices = &mut self.timeline.slices[first..];
            slices.sort_by_key(|slice| (slice.track, slice.start_ns, Reverse(slice.duration_ns)));
        }
    }

    fn add_gpu_slice(
        &mut self,
        of: TimedScope,
        measured: &GpuSlice,
        track: u32,
        placed: PlacedSlice,
    ) {
        let gpu = &self.trace.gpu[of.gpu as usize];
        let moved = placed.start - measured.start;
        let slice = Slice {
            uncertainty_ns: Some(measured.uncertainty),
            moved_ns: (moved.abs() > measured.uncertainty).then_some(moved),
            ..self.gpu_slice(gpu, of.scope, track, (placed.start, placed.end))
        };
        self.timeline.slices.push(slice);
    }

    fn gpu_slice(
        &mut self,
        gpu: &GpuRecord,
        scope: u32,
        track: u32,
        (start, end): (i64, i64),
    ) -> Slice {
        let measured = whole(gpu.ns);
        let scope = self.slice_of[scope as usize];
        Slice {
            track,
            name: self.name(gpu.name),
            start_ns: start,
            duration_ns: end - start,
            self_ns: whole(gpu.own).clamp(0, measured.max(0)),
            measured_ns: (measured != end - start).then_some(measured),
            kind: SliceKind::GpuScope,
            parent: (scope != NONE).then_some(scope),
            ..Slice::default()
        }
    }

    /// Adds a track for slices that overlap others of a stream.
    fn add_lane(&mut self, stream: u32, number: usize) -> u32 {
        let mut track = self.timeline.tracks[stream as usize].clone();
        track.name = format!("stream {}, overlapping {number}", track.id);
        self.add_track(track)
    }

    /// Adds a track for each stream.
    fn add_streams(&mut self) -> StreamTracks {
        let numbers = stream_numbers(&self.trace.gpu);
        let devices = numbers.keys().filter_map(|(device, _)| *device);
        let names = device_names(devices.map(u64::from));
        let mut tracks = StreamTracks::with_capacity(numbers.len());
        for ((device, stream), number) in numbers {
            let name = device.and_then(|device| names.get(device as usize));
            // The kernels of the stream have a track of their own.
            let of_scopes = if self.trace.has_kernels() {
                ": scopes"
            } else {
                ""
            };
            let track = self.add_track(Track {
                kind: TrackKind::GpuStream,
                name: format!("{}{of_scopes}", stream_name(number, stream)),
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
