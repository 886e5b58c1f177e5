//! The processes and threads of a file, for the tracks of a time line.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{self, Write};

use super::event_writer::{EventWriter, Track as Place};
use super::{FREE, MAX_DEVICE};
use crate::report::{Timeline, Track, TrackKind};

/// Devices are shown below the host.
const DEVICE_SORT_INDEX: u64 = 5_000_000;

/// A process of the program: its rank, and its system's id.
type HostKey = (Option<u64>, u64);
/// A device: the rank that it belongs to, and its ordinal there.
type DeviceKey = (Option<u64>, u32);

/// The places of all tracks. Ranks may have equal ids of processes, threads, devices and streams: each keeps its id unless
/// another track has it already.
pub(super) struct Places {
    hosts: BTreeMap<HostKey, u64>,
    devices: BTreeMap<DeviceKey, u64>,
    /// In the order of the time line's tracks.
    of_tracks: Vec<Place>,
    /// The number of the stream of each track, and 0 for threads.
    streams: Vec<u64>,
    next_thread: u64,
    /// Further tracks, with their names.
    further: Vec<(Place, String)>,
}

impl Places {
    pub(super) fn new(timeline: &Timeline) -> Self {
        let tracks = &timeline.tracks;
        let devices = devices(tracks);
        let mut places = Self {
            hosts: hosts(tracks, devices.len() as u64),
            devices,
            of_tracks: Vec::with_capacity(tracks.len()),
            streams: vec![0; tracks.len()],
            next_thread: FREE,
            further: Vec::new(),
        };
        let mut used = HashSet::new();
        for track in tracks {
            let place = match device_of(track) {
                Some(device) => Place {
                    pid: places.devices.get(&device).copied().unwrap_or(0),
                    tid: 0,
                },
                // TensorBoard's trace plugin tells threads by their ids alone, whatever their process.
                None if (1..FREE).contains(&track.id) && used.insert(track.id) => Place {
                    pid: places.host(track),
                    tid: track.id,
                },
                None => places.next(places.host(track)),
            };
            places.of_tracks.push(place);
        }
        places.number_streams(tracks);
        places
    }

    /// Numbers streams from 1 on, which the tools need, and tracks beside a stream after all streams.
    fn number_streams(&mut self, tracks: &[Track]) {
        let mut used: BTreeSet<(u64, u64)> = BTreeSet::new();
        let mut numbers: HashMap<(u64, u64), u64> = HashMap::new();
        let is_stream = |track: &Track| track.kind == TrackKind::GpuStream;
        for (track, place) in tracks.iter().zip(&mut self.of_tracks) {
            if is_stream(track)
                && (1..FREE).contains(&track.id)
                && used.insert((place.pid, track.id))
            {
                place.tid = track.id;
                numbers.insert((place.pid, track.id), track.id);
            }
        }
        for ((track, place), stream) in tracks
            .iter()
            .zip(&mut self.of_tracks)
            .zip(&mut self.streams)
        {
            if !is_stream(track) {
                continue;
            }
            if place.tid == 0 {
                let of_device = used.range((place.pid, 0)..=(place.pid, u64::MAX));
                place.tid = of_device.last().map_or(1, |(_, last)| last + 1);
                used.insert((place.pid, place.tid));
            }
            *stream = *numbers.entry((place.pid, track.id)).or_insert(place.tid);
        }
    }

    fn host(&self, track: &Track) -> u64 {
        let host = self.hosts.get(&(track.rank, track.process));
        host.copied().unwrap_or(FREE)
    }

    fn next(&mut self, pid: u64) -> Place {
        self.next_thread += 1;
        let tid = self.next_thread;
        Place { pid, tid }
    }

    pub(super) fn of(&self, track: u32) -> Option<Place> {
        self.of_tracks.get(track as usize).copied()
    }

    /// Returns the number of a track's stream.
    pub(super) fn stream(&self, track: u32) -> u64 {
        self.streams.get(track as usize).copied().unwrap_or(0)
    }

    /// Returns a new track of the process that a track belongs to; of the first process if there is no such track.
    pub(super) fn further(&mut self, timeline: &Timeline, track: u32, name: String) -> Place {
        let track = timeline.tracks.get(track as usize);
        let pid = track.map(|track| self.host(track));
        let pid = pid.unwrap_or_else(|| self.first_host());
        let place = self.next(pid);
        self.further.push((place, name));
        place
    }

    /// Returns the process that counters are shown at.
    pub(super) fn first_host(&self) -> u64 {
        self.hosts.values().next().copied().unwrap_or(FREE)
    }

    /// Returns the names of the devices, by their process ids.
    pub(super) fn device_names<'t>(&self, timeline: &'t Timeline) -> Vec<&'t str> {
        let last = self.devices.values().max();
        let mut names = vec![""; last.map_or(0, |last| usize::try_from(*last).unwrap_or(0) + 1)];
        for (track, place) in timeline.tracks.iter().zip(&self.of_tracks) {
            let name = usize::try_from(place.pid).ok();
            let name = name.and_then(|pid| names.get_mut(pid));
            if let Some(name) = name.filter(|_| track.kind == TrackKind::GpuStream)
                && name.is_empty()
            {
                *name = &track.device_name;
            }
        }
        names
    }

    /// Writes the names of processes and threads, and what the command line needs to know the tracks again.
    pub(super) fn write<W: Write>(
        &self,
        timeline: &Timeline,
        events: &mut EventWriter<W>,
    ) -> io::Result<()> {
        let mut named = HashSet::new();
        for (track, place) in timeline.tracks.iter().zip(&self.of_tracks) {
            if named.insert(place.pid) {
                write_process(events, track, *place)?;
            }
            // A process may have streams alone.
            let host = self.host(track);
            if named.insert(host) {
                let place = Place { pid: host, tid: 0 };
                let line = events.about("process_name", place);
                line.text("name", &track.process_name).end()?;
            }
        }
        for (number, (track, place)) in timeline.tracks.iter().zip(&self.of_tracks).enumerate() {
            let mut line = events.about("thread_name", *place);
            line = line
                .text("name", &track.name)
                .whole("process", track.process)
                .whole("thread", track.id);
            if let Some(rank) = track.rank {
                line = line.whole("rank of process", rank);
            }
            if let Some((_, device)) = device_of(track) {
                line = line
                    .whole("stream", self.streams[number])
                    .whole("ordinal", device.into())
                    .whole("host", self.host(track));
            }
            line.end()?;
            let order = events.about("thread_sort_index", *place);
            order.whole("sort_index", number as u64 + 1).end()?;
        }
        for (place, name) in &self.further {
            events
                .about("thread_name", *place)
                .text("name", name)
                .end()?;
        }
        Ok(())
    }
}

fn write_process<W: Write>(
    events: &mut EventWriter<W>,
    track: &Track,
    place: Place,
) -> io::Result<()> {
    let place = Place { tid: 0, ..place };
    let (name, label, order) = match device_of(track) {
        Some((_, device)) => (
            format!(
                "{} (GPU {device}: {})",
                track.process_name, track.device_name
            ),
            format!("GPU {device}"),
            DEVICE_SORT_INDEX + place.pid,
        ),
        None => (track.process_name.clone(), "CPU".to_owned(), place.pid),
    };
    events
        .about("process_name", place)
        .text("name", &name)
        .end()?;
    events
        .about("process_labels", place)
        .text("labels", &label)
        .end()?;
    let line = events.about("process_sort_index", place);
    line.whole("sort_index", order).end()
}

fn device_of(track: &Track) -> Option<DeviceKey> {
    let is_stream = track.kind == TrackKind::GpuStream;
    is_stream.then(|| (track.rank, track.device.unwrap_or(0)))
}

/// Numbers processes by their ids, unless these may be mistaken for one of the `devices`.
fn hosts(tracks: &[Track], devices: u64) -> BTreeMap<HostKey, u64> {
    let keys = tracks
        .iter()
        .map(|track| ((track.rank, track.process), FREE));
    let mut hosts: BTreeMap<HostKey, u64> = keys.collect();
    let mut used = HashSet::new();
    let mut next = FREE;
    for ((_, process), pid) in &mut hosts {
        // Process 1, in a container, must not be shown as the second device.
        *pid = if (devices.max(MAX_DEVICE + 1)..FREE).contains(process) && used.insert(*process) {
            *process
        } else {
            next += 1;
            next
        };
    }
    hosts
}

/// Numbers devices by their ordinals; in turn if there are several ranks, each with a device 0.
fn devices(tracks: &[Track]) -> BTreeMap<DeviceKey, u64> {
    let keys = tracks.iter().filter_map(device_of);
    let mut devices: BTreeMap<DeviceKey, u64> = keys.map(|key| (key, u64::from(key.1))).collect();
    let ranks: BTreeSet<Option<u64>> = devices.keys().map(|(rank, _)| *rank).collect();
    let last = devices.values().max().copied().unwrap_or(0);
    if ranks.len() > 1 || last > MAX_DEVICE {
        for (number, device) in (0..).zip(devices.values_mut()) {
            *device = number;
        }
    }
    devices
}
