//! Tracks: processes and threads of the host, devices and their streams, and further tracks for slices that would
//! overlap on one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use crate::cuda::GpuRecord;
use crate::process::platform::process_id;
use crate::process::program;
use crate::report::export::chrome::event_writer::{EventWriter, Track};
use crate::report::export::chrome::{FREE, MAX_DEVICE};
use crate::report::export::window::track_names::{stream_name, stream_numbers, thread_name};
use crate::report::export::window::work_streams::{WorkStream, work_stream_numbers};
use crate::session::Trace;

/// Devices are shown below the host.
const DEVICE_SORT_INDEX: u64 = 5_000_000;

/// All tracks of a trace.
pub(super) struct Tracks {
    pub(super) host: u64,
    threads: Vec<u64>,
    next: u64,
    named: Vec<Named>,
    steps: BTreeMap<u32, Track>,
    streams: BTreeMap<(u64, WorkStream), u64>,
    unknown_device: u64,
    next_in_device: BTreeMap<u64, u64>,
}

struct Named {
    track: Track,
    name: String,
    sort_index: u64,
    /// The stream whose slices are on the track, if that has another number.
    stream: Option<u64>,
}

impl Tracks {
    pub(super) fn new(trace: &Trace) -> Self {
        let of_scopes = trace.gpu.iter().filter_map(|gpu| gpu.device);
        let of_work = trace.work.work.iter().map(|work| work.details.device);
        let known: BTreeSet<u64> = of_scopes.chain(of_work).map(u64::from).collect();
        let unknown_device = known.last().map_or(0, |last| (last + 1).min(MAX_DEVICE));
        // Process 1, in a container, must not be shown as the second device.
        let pid = u64::from(process_id());
        let host = if pid <= MAX_DEVICE { FREE + pid } else { pid };
        let mut tracks = Self {
            host,
            threads: Vec::with_capacity(trace.threads.len()),
            next: FREE,
            named: Vec::new(),
            steps: BTreeMap::new(),
            streams: BTreeMap::new(),
            unknown_device,
            next_in_device: BTreeMap::new(),
        };
        for (index, thread) in (0..).zip(&trace.threads) {
            let tid = if (1..FREE).contains(&thread.id) {
                thread.id
            } else {
                tracks.free_tid()
            };
            tracks.threads.push(tid);
            let place = Track { pid: host, tid };
            tracks.name(place, thread_name(thread), sort_index(index));
        }
        tracks.number_streams(trace);
        tracks
    }

    fn number_streams(&mut self, trace: &Trace) {
        let of_scopes = stream_numbers(&trace.gpu, |gpu| self.device(gpu));
        let known = of_scopes.iter().filter_map(|((device, key), number)| {
            Some((u32::try_from(*device).ok()?, *key, *number))
        });
        let of_work = work_stream_numbers(trace, known);
        let of_work = of_work
            .into_iter()
            .map(|((device, stream), number)| ((u64::from(device), stream), number));
        let of_scopes = of_scopes
            .into_iter()
            .map(|((device, key), number)| ((device, WorkStream::Known(key)), number));
        self.streams = of_scopes.chain(of_work).collect();
        for ((device, stream), number) in &self.streams {
            let next = self.next_in_device.entry(*device).or_default();
            *next = (*next).max(*number);
            let name = match stream {
                WorkStream::Known(key) => stream_name(*number, *key),
                WorkStream::Numbered { .. } => format!("stream {number}"),
            };
            self.named.push(Named {
                track: Track {
                    pid: *device,
                    tid: *number,
                },
                name,
                sort_index: number * 2,
                stream: None,
            });
        }
    }

    fn free_in_device(&mut self, device: u64) -> u64 {
        let next = self.next_in_device.entry(device).or_default();
        *next += 1;
        *next
    }

    fn free_tid(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn name(&mut self, track: Track, name: String, sort_index: u64) {
        self.named.push(Named {
            track,
            name,
            sort_index,
            stream: None,
        });
    }

    /// Returns the track of a thread of the window.
    pub(super) fn thread(&self, index: u32) -> Track {
        let tid = self.threads.get(index as usize).copied();
        Track {
            pid: self.host,
            tid: tid.unwrap_or_default(),
        }
    }

    /// Returns the ordinal of the device; if that is not known, an ordinal that no known device has.
    pub(super) fn device(&self, gpu: &GpuRecord) -> u64 {
        gpu.device.map_or(self.unknown_device, u64::from)
    }

    pub(super) fn stream(&self, device: u64, stream: WorkStream) -> Track {
        let tid = self.streams.get(&(device, stream)).copied();
        Track {
            pid: device,
            tid: tid.unwrap_or_default(),
        }
    }

    /// Returns the track for the steps that a thread ended, shown above the thread.
    pub(super) fn steps(&mut self, thread: u32) -> Track {
        if let Some(track) = self.steps.get(&thread) {
            return *track;
        }
        let own = self.thread(thread).tid;
        let track = self.further(
            format!("steps of thread {own}"),
            sort_index(u64::from(thread)) - 1,
        );
        self.steps.insert(thread, track);
        track
    }

    pub(super) fn replays(&mut self) -> Track {
        let last = sort_index(self.threads.len() as u64) + 1;
        self.further("replays of graphs, when they were noticed".to_owned(), last)
    }

    pub(super) fn future(&mut self, number: usize) -> Track {
        let last = sort_index(self.threads.len() as u64);
        self.further(format!("futures {number}"), last)
    }

    /// Returns a track for calls on threads without scopes, whose ids are not known.
    pub(super) fn other_thread(&mut self, number: usize) -> Track {
        let last = sort_index(self.threads.len() as u64);
        self.further(format!("threads without scopes {number}"), last)
    }

    /// Returns the track for work whose launch was not recorded.
    pub(super) fn unknown_launches(&mut self) -> Track {
        let last = sort_index(self.threads.len() as u64) + 1;
        self.further("launches that were not recorded".to_owned(), last)
    }

    /// Returns a track for waits for a device.
    pub(super) fn waits(&mut self, device: u64, number: usize) -> Track {
        let track = Track {
            pid: device,
            tid: self.free_in_device(device),
        };
        self.name(track, format!("waits {number}"), track.tid * 2);
        track
    }

    /// Returns a track for slices that overlap others of their thread, because guards were dropped out of order.
    pub(super) fn beside_thread(&mut self, index: u32, number: usize) -> Track {
        let thread = self.thread(index).tid;
        let name = format!("thread {thread}, overlapping {number}");
        self.further(name, sort_index(u64::from(index)) + 1)
    }

    /// Returns a track for slices that overlap others of their stream, because several threads share it.
    pub(super) fn beside_stream(&mut self, stream: Track, number: usize) -> Track {
        let tid = self.free_in_device(stream.pid);
        let track = Track {
            pid: stream.pid,
            tid,
        };
        self.named.push(Named {
            track,
            name: format!("stream {}, overlapping {number}", stream.tid),
            sort_index: stream.tid * 2 + 1,
            stream: Some(stream.tid),
        });
        track
    }

    /// Returns a track for the GPU times of scopes on a stream; beyond the first, for those that overlap others.
    pub(super) fn scopes_of_stream(&mut self, stream: Track, number: usize) -> Track {
        let tid = self.free_in_device(stream.pid);
        let track = Track { tid, ..stream };
        let name = match number {
            0 => format!("stream {}: scopes", stream.tid),
            _ => format!("stream {}: scopes, overlapping {number}", stream.tid),
        };
        self.named.push(Named {
            track,
            name,
            sort_index: stream.tid * 2 + 1,
            stream: Some(stream.tid),
        });
        track
    }

    fn further(&mut self, name: String, sort_index: u64) -> Track {
        let track = Track {
            pid: self.host,
            tid: self.free_tid(),
        };
        self.name(track, name, sort_index);
        track
    }

    /// Returns the ordinals of all devices with GPU times or work.
    pub(super) fn devices(&self) -> BTreeSet<u64> {
        self.streams.keys().map(|(device, _)| *device).collect()
    }

    /// Writes the names of the processes. `devices` holds the names of the devices, by ordinal.
    pub(super) fn write_processes<W: Write>(
        &self,
        events: &mut EventWriter<W>,
        devices: &[String],
    ) -> io::Result<()> {
        let program = program::name();
        let name = format!("{program} (CPU)");
        let pid = u64::from(process_id());
        // The trace may give the process another id.
        let label = if self.host == pid {
            "CPU".to_owned()
        } else {
            format!("CPU, process {pid}")
        };
        write_process(events, self.host, &name, &label, 0)?;
        for device in self.devices() {
            let ordinal = usize::try_from(device).unwrap_or_default();
            let model = devices.get(ordinal).map_or("unknown", String::as_str);
            let name = format!("{program} (GPU {device}: {model})");
            let label = format!("GPU {device}");
            write_process(events, device, &name, &label, DEVICE_SORT_INDEX + device)?;
        }
        Ok(())
    }

    /// Writes the names of the tracks; last, when all are known.
    pub(super) fn write_names<W: Write>(&self, events: &mut EventWriter<W>) -> io::Result<()> {
        for named in &self.named {
            let name = events.about("thread_name", named.track);
            let name = name.text("name", &named.name);
            match named.stream {
                // The command line counts its slices for the stream.
                Some(stream) => name.whole("stream", stream).end()?,
                None => name.end()?,
            }
            let place = events.about("thread_sort_index", named.track);
            place.whole("sort_index", named.sort_index).end()?;
        }
        Ok(())
    }
}

/// Returns the position of a thread among those of the host. The position before it is for steps, the next one for
/// overlapping slices.
fn sort_index(thread: u64) -> u64 {
    1 + 3 * thread
}

fn write_process<W: Write>(
    events: &mut EventWriter<W>,
    pid: u64,
    name: &str,
    label: &str,
    sort_index: u64,
) -> io::Result<()> {
    let track = Track { pid, tid: 0 };
    events
        .about("process_name", track)
        .text("name", name)
        .end()?;
    events
        .about("process_labels", track)
        .text("labels", label)
        .end()?;
    let place = events.about("process_sort_index", track);
    place.whole("sort_index", sort_index).end()
}
