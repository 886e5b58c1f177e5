//! Processes, threads, devices and streams, and the tracks of everything else.

use std::collections::HashMap;
use std::io::{self, Write};

use super::fields::{counter, process, thread, track_descriptor};
use super::packets::Packets;
use crate::protobuf::Message;
use crate::{Counter, Timeline, Track, TrackKind};

/// Few systems use ids of processes and threads from here on; Perfetto reads 32 bits, and 0 is the idle process.
const FREE: u64 = 1 << 30;

/// `TrackDescriptor.ChildTracksOrdering`: children are shown by their ranks.
const EXPLICIT: u64 = 3;

/// The id, the name and the rank of a process: those on different machines may have equal ids.
type ProcessKey<'t> = (u64, &'t str, Option<u64>);

/// The numbers under which events name their tracks.
pub(super) struct Tracks<'t> {
    timeline: &'t Timeline,
    last: u64,
    /// The process, if there is only one: what belongs to no thread is shown there.
    process: Option<u64>,
    /// By the index in the time line.
    numbers: Vec<u64>,
    beside: HashMap<(u32, u32), u64>,
}

/// A process that was described.
struct ProcessTrack {
    number: u64,
    pid: u64,
}

/// Describes the tracks of a time line.
struct Writer<'t, W> {
    packets: &'t mut Packets<W>,
    last: u64,
    free: u64,
    processes: HashMap<ProcessKey<'t>, ProcessTrack>,
    pids: HashMap<u64, ProcessKey<'t>>,
    threads: HashMap<(ProcessKey<'t>, u64), u64>,
    devices: HashMap<(ProcessKey<'t>, Option<u32>), u64>,
}

impl<'t> Tracks<'t> {
    /// Describes all tracks of the time line.
    pub(super) fn describe<W: Write>(
        timeline: &'t Timeline,
        packets: &mut Packets<W>,
    ) -> io::Result<Self> {
        let mut writer = Writer {
            packets,
            last: 0,
            free: FREE,
            processes: HashMap::new(),
            pids: HashMap::new(),
            threads: HashMap::new(),
            devices: HashMap::new(),
        };
        let numbers: io::Result<Vec<u64>> = timeline
            .tracks
            .iter()
            .zip(0..)
            .map(|(track, rank)| writer.track(track, rank))
            .collect();
        Ok(Self {
            timeline,
            numbers: numbers?,
            last: writer.last,
            process: match writer.processes.len() {
                1 => writer.processes.values().next().map(|only| only.number),
                _ => None,
            },
            beside: HashMap::new(),
        })
    }

    /// Returns the number of a track of the time line.
    pub(super) fn number(&self, track: u32) -> u64 {
        self.numbers
            .get(track as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Returns the number of the n-th track below another one, for slices that would cross others.
    pub(super) fn beside<W: Write>(
        &mut self,
        track: u32,
        lane: u32,
        packets: &mut Packets<W>,
    ) -> io::Result<u64> {
        if let Some(number) = self.beside.get(&(track, lane)) {
            return Ok(*number);
        }
        let name = match self.timeline.tracks.get(track as usize) {
            Some(track) => format!("{}, overlapping {lane}", track.name),
            None => format!("overlapping {lane}"),
        };
        let number = self.below(&name, Some(self.number(track)), packets)?;
        self.beside.insert((track, lane), number);
        Ok(number)
    }

    /// Returns the number of a track that belongs to no thread.
    pub(super) fn further<W: Write>(
        &mut self,
        name: &str,
        packets: &mut Packets<W>,
    ) -> io::Result<u64> {
        self.below(name, self.process, packets)
    }

    /// Returns the number of a track below another one.
    pub(super) fn below<W: Write>(
        &mut self,
        name: &str,
        parent: Option<u64>,
        packets: &mut Packets<W>,
    ) -> io::Result<u64> {
        self.last += 1;
        packets.describe(&named(self.last, name, parent))?;
        Ok(self.last)
    }

    /// Returns the number of the track of a counter.
    pub(super) fn counter<W: Write>(
        &mut self,
        values: &Counter,
        packets: &mut Packets<W>,
    ) -> io::Result<u64> {
        self.last += 1;
        let name = match values.device {
            Some(device) => format!("{}, GPU {device}", values.name),
            None => values.name.clone(),
        };
        let mut track = named(self.last, &name, self.process);
        let mut about = Message::default();
        match values.unit.as_str() {
            "" => {}
            "bytes" => about.unsigned(counter::UNIT, 3),
            "ns" => about.unsigned(counter::UNIT, 1),
            unit => about.text(counter::UNIT_NAME, unit),
        }
        track.message(track_descriptor::COUNTER, &about);
        packets.describe(&track)?;
        Ok(self.last)
    }

    /// Returns the number of the track of a share of time, in percent, below that of a thread.
    pub(super) fn percent_of<W: Write>(
        &mut self,
        thread: u32,
        name: &str,
        packets: &mut Packets<W>,
    ) -> io::Result<u64> {
        self.last += 1;
        let mut track = named(self.last, name, Some(self.number(thread)));
        let mut about = Message::default();
        about.text(counter::UNIT_NAME, "%");
        track.message(track_descriptor::COUNTER, &about);
        packets.describe(&track)?;
        Ok(self.last)
    }
}

/// Returns a track that has only a name.
fn named(number: u64, name: &str, parent: Option<u64>) -> Message {
    let mut track = Message::default();
    track.unsigned(track_descriptor::UUID, number);
    if let Some(parent) = parent {
        track.unsigned(track_descriptor::PARENT, parent);
    }
    track.text(track_descriptor::NAME, name);
    track
}

impl<'t, W: Write> Writer<'t, W> {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn track(&mut self, track: &'t Track, rank: u64) -> io::Result<u64> {
        let key = (track.process, &*track.process_name, track.rank);
        let (parent, pid) = self.process(key)?;
        match track.kind {
            TrackKind::HostThread => {
                if let Some(first) = self.threads.get(&(key, track.id)).copied() {
                    // A further track of the thread, for scopes that would cross others.
                    return self.child(&track.name, first, rank);
                }
                let number = self.thread(track, parent, pid)?;
                self.threads.insert((key, track.id), number);
                Ok(number)
            }
            TrackKind::Futures => self.child(&track.name, parent, rank),
            TrackKind::GpuStream => {
                let device = self.device(key, track, parent)?;
                self.child(&track.name, device, rank)
            }
        }
    }

    /// Describes a track by its name.
    fn child(&mut self, name: &str, parent: u64, rank: u64) -> io::Result<u64> {
        let number = self.number();
        let mut child = named(number, name, Some(parent));
        child.unsigned(track_descriptor::RANK, rank);
        self.packets.describe(&child)?;
        Ok(number)
    }

    /// Returns the number and the id of a process, which is described when it is first met.
    fn process(&mut self, key: ProcessKey<'t>) -> io::Result<(u64, u64)> {
        if let Some(ProcessTrack { number, pid }) = self.processes.get(&key) {
            return Ok((*number, *pid));
        }
        let (id, name, rank) = key;
        let is_free = (1..FREE).contains(&id) && !self.pids.contains_key(&id);
        let pid = if is_free { id } else { self.free_id() };
        self.pids.insert(pid, key);
        let number = self.number();
        let mut about = Message::default();
        about.unsigned(process::PID, pid);
        about.text(process::NAME, name);
        if let Some(rank) = rank {
            about.text(process::LABELS, &format!("rank {rank}"));
        }
        if pid != id {
            about.text(process::LABELS, &format!("process {id}"));
        }
        let mut track = Message::default();
        track.unsigned(track_descriptor::UUID, number);
        track.message(track_descriptor::PROCESS, &about);
        self.packets.describe(&track)?;
        self.processes.insert(key, ProcessTrack { number, pid });
        Ok((number, pid))
    }

    fn thread(&mut self, track: &Track, parent: u64, pid: u64) -> io::Result<u64> {
        let number = self.number();
        let tid = if (1..FREE).contains(&track.id) {
            track.id
        } else {
            self.free_id()
        };
        let mut about = Message::default();
        about.unsigned(thread::PID, pid);
        about.unsigned(thread::TID, tid);
        // Perfetto appends the id.
        let suffix = format!(" ({})", track.id);
        let name = track.name.strip_suffix(&suffix).unwrap_or(&track.name);
        if name != format!("thread {}", track.id) {
            about.text(thread::NAME, name);
        }
        let mut described = Message::default();
        described.unsigned(track_descriptor::UUID, number);
        described.unsigned(track_descriptor::PARENT, parent);
        described.message(track_descriptor::THREAD, &about);
        self.packets.describe(&described)?;
        Ok(number)
    }

    /// Returns the number of the track that holds the streams of a device.
    fn device(&mut self, key: ProcessKey<'t>, track: &Track, parent: u64) -> io::Result<u64> {
        if let Some(number) = self.devices.get(&(key, track.device)) {
            return Ok(*number);
        }
        let number = self.number();
        let name = match track.device {
            Some(device) if track.device_name.is_empty() => format!("GPU {device}"),
            Some(device) => format!("GPU {device}: {}", track.device_name),
            None => "GPU of unknown number".to_owned(),
        };
        let mut group = named(number, &name, Some(parent));
        group.unsigned(track_descriptor::CHILD_ORDERING, EXPLICIT);
        self.packets.describe(&group)?;
        self.devices.insert((key, track.device), number);
        Ok(number)
    }

    fn free_id(&mut self) -> u64 {
        self.free += 1;
        self.free
    }
}
