//! The processes and threads of a file, for the tracks of a time line.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::io::{self, Write};

use super::event_writer::{EventLine, EventWriter, Track as Place};
use super::{FREE, MAX_DEVICE};
use crate::in_order::InOrder as _;
use crate::overlap::{OverlapTracks, name_of_track};
use crate::timeline::OnGpu;
use crate::{SliceKind, Timeline, Track, TrackKind};
use profiler_cuda_sys::driver::DeviceProperties;

/// Devices are shown below the host.
const DEVICE_SORT_INDEX: u64 = 5_000_000;

/// A process of the program: its rank, and its system's id.
type HostKey = (Option<u64>, u64);
/// A device: the rank that it belongs to, and its ordinal there, or [`UNKNOWN`].
type DeviceKey = (Option<u64>, u32);

/// The ordinal of a device that is not known: behind all others.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// The places of all tracks. Ranks may have equal ids of processes, threads, devices and streams: each keeps its id unless
/// another track has it already.
pub(super) struct Places {
    hosts: BTreeMap<HostKey, u64>,
    devices: BTreeMap<DeviceKey, u64>,
    /// In the order of the time line's tracks.
    of_tracks: Vec<Place>,
    /// The number of the stream of each track, and 0 for threads.
    streams: Vec<u64>,
    /// The position of each track among all.
    order: Vec<u64>,
    next_thread: u64,
    /// The last id of a track of each device.
    last_of_device: HashMap<u64, u64>,
    /// Further tracks.
    further: Vec<Further>,
}

/// A track of the file that is none of the time line.
struct Further {
    place: Place,
    rank: Option<u64>,
    name: String,
    position: u64,
}

/// Tracks for slices that may overlap, for each of several groups: slices of different groups share none.
pub(super) struct GroupedTracks<G, T>(HashMap<G, OverlapTracks<T>>);

impl<G, T> Default for GroupedTracks<G, T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<G: Eq + Hash, T: Copy + Default + Ord> GroupedTracks<G, T> {
    /// Returns a track of a group, as [`OverlapTracks::take`] does.
    pub(super) fn take(
        &mut self,
        group: G,
        (start, end): (i64, i64),
        make: impl FnOnce(usize) -> T,
    ) -> T {
        self.0.entry(group).or_default().take(start, end, make)
    }
}

impl Places {
    pub(super) fn new(timeline: &Timeline, on_gpu: OnGpu<'_>) -> Self {
        let tracks = &timeline.tracks;
        let devices = devices(timeline);
        let mut places = Self {
            hosts: hosts(tracks, devices.len() as u64),
            devices,
            of_tracks: Vec::with_capacity(tracks.len()),
            streams: vec![0; tracks.len()],
            order: order(tracks),
            last_of_device: HashMap::new(),
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
        places.number_streams(timeline, on_gpu);
        places
    }

    /// Numbers streams from 1 on, which the tools need, and tracks beside a stream after all streams. Where kernels were
    /// recorded, theirs is the track of the stream.
    fn number_streams(&mut self, timeline: &Timeline, on_gpu: OnGpu<'_>) {
        let tracks = &timeline.tracks;
        let mut has_work = vec![false; tracks.len()];
        for (_, slice) in on_gpu.iter() {
            if slice.kind == SliceKind::GpuWork
                && let Some(has_work) = has_work.get_mut(slice.track as usize)
            {
                *has_work = true;
            }
        }
        let mut used: BTreeSet<(u64, u64)> = BTreeSet::new();
        let mut numbers: HashMap<(u64, u64), u64> = HashMap::new();
        let is_stream = |track: &Track| track.kind == TrackKind::GpuStream;
        let (with_work, others): (Vec<usize>, Vec<usize>) =
            (0..tracks.len()).partition(|index| has_work[*index]);
        for index in with_work.into_iter().chain(others) {
            let (track, place) = (&tracks[index], &mut self.of_tracks[index]);
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
        // In the order of their ids.
        self.last_of_device = used.into_iter().collect();
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

    /// Returns a new track of the process that a track belongs to, below its others; of the first process if there is no
    /// such track.
    pub(super) fn further(&mut self, timeline: &Timeline, track: u32, name: String) -> Place {
        let last = position(timeline.tracks.len() as u64);
        self.further_at(timeline, track, name, last)
    }

    /// Returns a new track for the steps that a thread ended, above that thread.
    pub(super) fn further_for_steps(
        &mut self,
        timeline: &Timeline,
        thread: Option<u32>,
        number: usize,
    ) -> Place {
        let Some(track) = thread else {
            return self.further(timeline, 0, format!("steps {number}"));
        };
        let id = self.of(track).map_or(0, |place| place.tid);
        let name = name_of_track(&format!("steps of thread {id}"), number);
        let above = self.order[track as usize] - 1;
        self.further_at(timeline, track, name, above)
    }

    fn further_at(
        &mut self,
        timeline: &Timeline,
        track: u32,
        name: String,
        position: u64,
    ) -> Place {
        let track = timeline.tracks.get(track as usize);
        let pid = track.map(|track| self.host(track));
        let pid = pid.unwrap_or_else(|| self.first_host());
        let place = self.next(pid);
        let rank = track.and_then(|track| track.rank);
        self.further.push(Further {
            place,
            rank,
            name,
            position,
        });
        place
    }

    /// Returns a new track of a device, below its streams.
    pub(super) fn further_of_device(&mut self, pid: u64, rank: Option<u64>, name: String) -> Place {
        let last = self.last_of_device.entry(pid).or_default();
        *last += 1;
        let place = Place { pid, tid: *last };
        self.further.push(Further {
            place,
            rank,
            name,
            position: position(self.of_tracks.len() as u64),
        });
        place
    }

    /// Returns the process of a device.
    pub(super) fn device(&self, rank: Option<u64>, ordinal: u32) -> u64 {
        self.devices.get(&(rank, ordinal)).copied().unwrap_or(0)
    }

    /// Returns the process of the first device.
    pub(super) fn first_device(&self) -> u64 {
        self.devices.values().next().copied().unwrap_or(0)
    }

    /// Returns the process that counters are shown at.
    pub(super) fn first_host(&self) -> u64 {
        self.hosts.values().next().copied().unwrap_or(FREE)
    }

    /// Returns the names and the properties of the devices, by their process ids.
    pub(super) fn devices_of<'t>(
        &self,
        timeline: &'t Timeline,
    ) -> Vec<(String, Option<&'t DeviceProperties>)> {
        let mut all: BTreeMap<u64, (&str, Option<&DeviceProperties>)> = BTreeMap::new();
        for (track, place) in timeline.tracks.iter().zip(&self.of_tracks) {
            if track.kind == TrackKind::GpuStream {
                let (name, _) = all.entry(place.pid).or_default();
                if name.is_empty() {
                    *name = &track.device_name;
                }
            }
        }
        for device in &timeline.devices {
            if let Some(pid) = self.devices.get(&(device.rank, device.ordinal)) {
                let (_, properties) = all.entry(*pid).or_default();
                properties.get_or_insert(&device.properties);
            }
        }
        let last = self.devices.values().max();
        let count = last.map_or(0, |last| last + 1);
        let device = |pid: u64| {
            let (name, properties) = all.get(&pid).copied().unwrap_or_default();
            let name = match name {
                "" => format!("CUDA device {pid}"),
                name => name.to_owned(),
            };
            (name, properties)
        };
        (0..count).map(device).collect()
    }

    /// Writes the names of processes and threads, and what the command line needs to know the tracks again.
    pub(super) fn write<W: Write>(
        &self,
        timeline: &Timeline,
        events: &mut EventWriter<W>,
    ) -> io::Result<()> {
        let mut named = HashSet::new();
        for track in &timeline.tracks {
            // A process may have streams alone.
            let host = self.host(track);
            if named.insert(host) {
                write_host(events, track, host)?;
            }
        }
        let mut of_devices: HashMap<DeviceKey, &Track> = HashMap::new();
        let mut of_ranks: HashMap<Option<u64>, &Track> = HashMap::new();
        for track in &timeline.tracks {
            of_ranks.entry(track.rank).or_insert(track);
            if let Some(device) = device_of(track) {
                of_devices.entry(device).or_insert(track);
            }
        }
        for (key, pid) in &self.devices {
            let of_device = of_devices.get(key);
            // Only waits may be on a device.
            let track = of_device.or_else(|| of_ranks.get(&key.0));
            let process = track.map_or("", |track| &track.process_name);
            let name = of_device.map_or("", |track| &track.device_name);
            write_device(events, *key, (process, name), *pid)?;
        }
        for (number, (track, place)) in timeline.tracks.iter().zip(&self.of_tracks).enumerate() {
            let mut line = events.about("thread_name", *place);
            line = line
                .text("name", &track.name)
                .whole("process", track.process)
                .whole("thread", track.id);
            line = line.rank(track.rank);
            if track.kind == TrackKind::GpuStream {
                line = line
                    .whole("stream", self.streams[number])
                    .whole("host", self.host(track));
            }
            if let Some(device) = track.device {
                line = line.whole("ordinal", device.into());
            }
            line.end()?;
            let order = events.about("thread_sort_index", *place);
            order.whole("sort_index", self.order[number]).end()?;
        }
        for further in &self.further {
            let line = events.about("thread_name", further.place);
            line.text("name", &further.name).rank(further.rank).end()?;
            let order = events.about("thread_sort_index", further.place);
            order.whole("sort_index", further.position).end()?;
        }
        Ok(())
    }
}

/// Returns the position of a track; the one before it is for steps.
const fn position(number: u64) -> u64 {
    2 + 2 * number
}

/// Returns the positions of all tracks: those of a thread or a stream come together.
fn order(tracks: &[Track]) -> Vec<u64> {
    let mut first = HashMap::new();
    let mut groups: Vec<(usize, usize)> = Vec::with_capacity(tracks.len());
    for (index, track) in tracks.iter().enumerate() {
        let key = (
            track.kind,
            track.rank,
            track.process,
            track.device,
            track.id,
        );
        groups.push((*first.entry(key).or_insert(index), index));
    }
    groups.order();
    let mut order = vec![0; tracks.len()];
    for (number, (_, index)) in (0..).zip(groups) {
        order[index] = position(number);
    }
    order
}

fn write_host<W: Write>(events: &mut EventWriter<W>, track: &Track, pid: u64) -> io::Result<()> {
    // The trace may give the process another id.
    let label = if track.process == pid {
        "CPU".to_owned()
    } else {
        format!("CPU, process {}", track.process)
    };
    write_process(events, pid, (&track.process_name, &label), pid, |line| line)
}

fn write_device<W: Write>(
    events: &mut EventWriter<W>,
    (rank, ordinal): DeviceKey,
    (process, device): (&str, &str),
    pid: u64,
) -> io::Result<()> {
    let order = DEVICE_SORT_INDEX + pid;
    if ordinal == UNKNOWN {
        let name = format!("{process} (GPU: unknown)");
        return write_process(events, pid, (&name, "GPU, unknown"), order, |line| line);
    }
    let between = if device.is_empty() { "" } else { ": " };
    let name = format!("{process} (GPU {ordinal}{between}{device})");
    let label = format!("GPU {ordinal}");
    write_process(events, pid, (&name, &label), order, |line| {
        line.whole("ordinal", ordinal.into()).rank(rank)
    })
}

fn write_process<W: Write>(
    events: &mut EventWriter<W>,
    pid: u64,
    (name, label): (&str, &str),
    order: u64,
    about: impl FnOnce(EventLine<'_, W>) -> EventLine<'_, W>,
) -> io::Result<()> {
    let place = Place { pid, tid: 0 };
    about(events.about("process_name", place).text("name", name)).end()?;
    events
        .about("process_labels", place)
        .text("labels", label)
        .end()?;
    let line = events.about("process_sort_index", place);
    line.whole("sort_index", order).end()
}

fn device_of(track: &Track) -> Option<DeviceKey> {
    let is_stream = track.kind == TrackKind::GpuStream;
    is_stream.then(|| (track.rank, track.device.unwrap_or(UNKNOWN)))
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
fn devices(timeline: &Timeline) -> BTreeMap<DeviceKey, u64> {
    let of_tracks = timeline.tracks.iter().filter_map(device_of);
    let of_waits = timeline.waits.iter();
    let of_waits = of_waits.map(|wait| (wait.rank, wait.work.device));
    let known = timeline.devices.iter();
    let known = known.map(|device| (device.rank, device.ordinal));
    let keys: BTreeSet<DeviceKey> = of_tracks.chain(of_waits).chain(known).collect();
    let ranks: BTreeSet<Option<u64>> = keys.iter().map(|(rank, _)| *rank).collect();
    let known = keys.iter().map(|(_, ordinal)| *ordinal);
    let last = known.filter(|ordinal| *ordinal != UNKNOWN).max();
    let after = last.map_or(0, |last| u64::from(last) + 1);
    let has_unknown = keys.iter().any(|(_, ordinal)| *ordinal == UNKNOWN);
    let by_ordinal = ranks.len() <= 1 && after + u64::from(has_unknown) <= MAX_DEVICE + 1;
    let number = |(number, key): (u64, DeviceKey)| {
        let device = match key.1 {
            _ if !by_ordinal => number,
            UNKNOWN => after,
            ordinal => ordinal.into(),
        };
        (key, device)
    };
    (0..).zip(keys).map(number).collect()
}
