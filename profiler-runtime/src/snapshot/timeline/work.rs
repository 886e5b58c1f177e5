//! Kernels, copies and fills on their streams, and the calls that launched them.

use std::collections::HashMap;
use std::sync::Arc;

use profiler_report::internal::{NestedTrack, OverlapTracks, place_among};
use profiler_report::{GpuWorkKind, Launch, Slice, SliceKind, SliceName, Track, TrackKind, Wait};

use super::gpu::StreamTracks;
use super::{Builder, NameId, index_of};
use crate::session::{NONE, Trace, WorkRecord};
use crate::snapshot::window::track_names::device_names;
use crate::snapshot::window::work_streams::{WorkStream, work_stream_numbers};

/// The tracks of the work on one stream.
struct WorkTracks {
    own: u32,
    nested: NestedTrack,
    lanes: OverlapTracks<u32>,
}

impl Builder<'_> {
    /// Adds the work of the window, on tracks beside those of the scopes' GPU times. Both have the number of the
    /// stream: the times of kernels are exact and those of scopes are moved within their uncertainty, so that on one
    /// track they could cross. `scopes` are the tracks of the streams with GPU times.
    pub(super) fn add_work(&mut self, scopes: &StreamTracks) {
        self.add_launches();
        let mut tracks = self.add_work_tracks(scopes);
        let trace = self.trace;
        for work in trace.work.on_streams() {
            let stream = (work.details.device, WorkStream::of(work));
            if let Some(tracks) = tracks.get_mut(&stream) {
                self.add_work_slice(work, tracks);
            }
        }
    }

    /// Adds the times of devices that the program reported, as GPU times of their scopes on tracks of their own.
    pub(super) fn add_reported(&mut self) {
        let mut lanes = OverlapTracks::default();
        for time in &self.trace.work.reported {
            let start = self.times.of_unix(time.span.0);
            let end = self.times.of_unix(time.span.1).max(start);
            let Some(parent) = self.slice_of_scope(time.scope) else {
                continue;
            };
            let track = lanes.take(start, end, |number| {
                self.add_track(Track {
                    kind: TrackKind::GpuStream,
                    name: format!("reported by the program {number}"),
                    // Above the numbers of streams.
                    id: 1_000_000 + number as u64,
                    ..Track::default()
                })
            });
            let slice = Slice {
                track,
                name: self.index_of_name(NameId::Work(time.name)),
                start_ns: start,
                duration_ns: end - start,
                self_ns: end - start,
                kind: SliceKind::GpuScope,
                parent: Some(parent),
                ..Slice::default()
            };
            self.timeline.slices.push(slice);
        }
    }

    pub(super) fn add_waits(&mut self) {
        let trace = self.trace;
        for work in &trace.work.work {
            let (GpuWorkKind::Synchronization(_), Some((start, end))) =
                (work.details.kind, work.span)
            else {
                continue;
            };
            let start = self.times.of_unix(start);
            let wait = Wait {
                rank: self.process.rank,
                name: self.index_of_name(NameId::Work(work.name)),
                start_ns: start,
                duration_ns: (self.times.of_unix(end) - start).max(0),
                work: work.details,
                non_exhaustive: (),
            };
            self.timeline.waits.push(wait);
        }
    }

    fn add_launches(&mut self) {
        let window = self.trace;
        let spans = self.launch_spans();
        let mut elsewhere = OverlapTracks::default();
        for (launch, (start, end)) in window.work.launches.iter().zip(spans) {
            let is_known = (launch.thread as usize) < window.threads.len();
            let track = if is_known {
                launch.thread
            } else {
                // Which of them share a thread is not known.
                elsewhere.take(start, end, |number| {
                    self.add_track(Track {
                        kind: TrackKind::HostThread,
                        name: format!("threads without scopes {number}"),
                        ..Track::default()
                    })
                })
            };
            let launch = Launch {
                track,
                name: self.index_of_name(NameId::Work(launch.name)),
                start_ns: start,
                duration_ns: end - start,
                parent: self.slice_of_scope(launch.scope),
                since_entered_ns: (launch.since)
                    .map(|since| start.saturating_sub(self.times.of_unix(since)).max(0)),
                correlation: launch.correlation,
                slice: None,
                non_exhaustive: (),
            };
            self.timeline.launches.push(launch);
        }
    }

    /// Returns start and end of each launch, such that those of a thread nest with its slices.
    fn launch_spans(&self) -> Vec<(i64, i64)> {
        let launches = &self.trace.work.launches;
        let mut slices: Vec<Vec<(i64, i64)>> = vec![Vec::new(); self.trace.threads.len()];
        for slice in &self.timeline.slices {
            if let Some(slices) = slices.get_mut(slice.track as usize) {
                slices.push((slice.start_ns, slice.start_ns + slice.duration_ns));
            }
        }
        let mut spans = Vec::with_capacity(launches.len());
        let mut by_thread: Vec<Vec<usize>> = vec![Vec::new(); self.trace.threads.len()];
        for (index, launch) in launches.iter().enumerate() {
            let [start, end] = [launch.span.0, launch.span.1].map(|ns| self.times.of_unix(ns));
            spans.push((start, end.max(start)));
            if let Some(launches) = by_thread.get_mut(launch.thread as usize) {
                launches.push(index);
            }
        }
        for (slices, launches) in slices.iter().zip(by_thread) {
            let calls: Vec<(i64, i64)> = launches.iter().map(|index| spans[*index]).collect();
            for (index, placed) in launches.into_iter().zip(place_among(slices, &calls)) {
                spans[index] = placed;
            }
        }
        spans
    }

    /// Returns the slice of a scope; that of the nearest scope around it if it was recorded without its CPU time.
    fn slice_of_scope(&self, mut scope: u32) -> Option<u32> {
        while scope != NONE {
            match self.slice_of.get(scope as usize).copied() {
                Some(NONE) => scope = self.trace.nodes[scope as usize].parent,
                slice => return slice,
            }
        }
        None
    }

    fn add_work_tracks(&mut self, scopes: &StreamTracks) -> HashMap<(u32, WorkStream), WorkTracks> {
        let of_scopes = scopes.iter().filter_map(|((device, key), track)| {
            let track = &self.timeline.tracks[*track as usize];
            Some(((*device)?, *key, track.id))
        });
        let numbers = work_stream_numbers(self.trace, of_scopes);
        let names = device_names(numbers.keys().map(|(device, _)| u64::from(*device)));
        let mut tracks = HashMap::with_capacity(numbers.len());
        for ((device, stream), number) in numbers {
            let stream_name = match stream {
                WorkStream::Known(key) => format!(" ({key})"),
                WorkStream::Numbered { .. } => String::new(),
            };
            let own = self.add_track(Track {
                kind: TrackKind::GpuStream,
                name: format!("stream {number}{stream_name}: kernels and copies"),
                id: number,
                device: Some(device),
                device_name: names.get(device as usize).cloned().unwrap_or_default(),
                ..Track::default()
            });
            let tracks_of_stream = WorkTracks {
                own,
                nested: NestedTrack::default(),
                lanes: OverlapTracks::default(),
            };
            tracks.insert((device, stream), tracks_of_stream);
        }
        tracks
    }

    fn add_work_slice(&mut self, work: &WorkRecord, tracks: &mut WorkTracks) {
        let Some((start, end)) = work.span else {
            return;
        };
        let start = self.times.of_unix(start);
        let end = self.times.of_unix(end).max(start);
        // Nodes of a graph run at once, although their stream is the same.
        let is_on_own = tracks.nested.add(start, end);
        let track = if is_on_own {
            tracks.own
        } else {
            tracks.lanes.take(start, end, |number| {
                let mut track = self.timeline.tracks[tracks.own as usize].clone();
                track.name = format!("{}, overlapping {number}", track.name);
                self.add_track(track)
            })
        };
        let launch = (work.launch as usize) < self.timeline.launches.len();
        let launch = launch.then_some(work.launch);
        let parent = launch.and_then(|launch| self.timeline.launches[launch as usize].parent);
        let slice = Slice {
            track,
            name: self.index_of_name(NameId::Work(work.name)),
            start_ns: start,
            duration_ns: end - start,
            self_ns: end - start,
            kind: SliceKind::GpuWork,
            parent,
            work: Some(index_of(self.timeline.work.len())),
            launch,
            ..Slice::default()
        };
        self.timeline.work.push(work.details);
        self.timeline.slices.push(slice);
    }
}

/// Returns the name of a kernel or a function of CUDA.
pub(super) fn name(trace: &Trace, id: u32) -> SliceName {
    let text = trace.work.names.get(id as usize);
    SliceName {
        text: text.map_or_else(|| Arc::from(trace.work.name(id)), Arc::clone),
        ..SliceName::default()
    }
}
