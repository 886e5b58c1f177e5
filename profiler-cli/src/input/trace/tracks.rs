//! Threads and streams: the pairs of process and thread in the events.

use std::collections::HashMap;

use profiler_report::{GpuWork, Track, TrackKind};

use super::args::TrackArgs;
use super::event::Id;

/// Texts in place of a thread's number get numbers from here on, which no system gives to threads.
const TEXT_IDS: u64 = 1 << 40;

/// The tracks of a file, numbered in the order in which they first occur.
#[derive(Default)]
pub(super) struct Tracks {
    numbers: HashMap<(Id, Id), u32>,
    all: Vec<RawTrack>,
    /// The track that was looked up last.
    last: u32,
    process_names: HashMap<Id, String>,
    /// The ranks that a merged file names before the numbers of processes, in the order in which they first occur.
    merged: HashMap<String, u32>,
}

/// One track.
pub(super) struct RawTrack {
    process: Id,
    thread: Id,
    name: Option<String>,
    /// `true` if GPU work is on it.
    pub(super) is_stream: bool,
    /// `true` if the categories of its events say what they are.
    pub(super) has_category: bool,
    /// The stream whose slices are on it, if the file says that it is beside that.
    stream: Option<u64>,
    /// What `profiler-runtime` wrote of it, and its rank.
    about: TrackArgs,
    /// The number of its rank, from 1, if the file names ranks before the numbers of processes; or else 0.
    merged: u32,
}

/// Returns the number of a process, or of the device that stands in its place.
fn process_number(process: &Id) -> Option<i64> {
    match process {
        Id::Number(number) => Some(*number),
        Id::Text(text) => merged_process(text).map(|(_, number)| number),
        Id::Missing => None,
    }
}

/// Returns the rank and the process of `[TP00-DP00] 83`, as tools write it that merge the traces of several ranks, such as `SGLang`.
fn merged_process(text: &str) -> Option<(&str, i64)> {
    let (rank, process) = text.strip_prefix('[')?.split_once("] ")?;
    Some((rank, process.parse().ok()?))
}

/// What the name of a process says of its rows: that they are rows of a device, as tools write it that have no categories.
enum DeviceRows {
    /// All rows are rows of the device with this ordinal: JAX and rocprof.
    Of(u32),
    /// Each row is a device: PyTorch before 1.8.
    Each,
}

impl DeviceRows {
    fn of(process: &str) -> Option<Self> {
        let number = |text: &str| text.parse().ok().map(Self::Of);
        if let Some(rest) = process.strip_prefix("/device:GPU:") {
            return number(rest.split(' ').next().unwrap_or(rest));
        }
        match process {
            "CUDA functions" => Some(Self::Each),
            "Ascend Hardware" => Some(Self::Of(0)),
            // A number before it puts the processes in order.
            _ => number(process.rsplit(' ').next()?.strip_prefix("GPU")?),
        }
    }
}

/// What is on a row of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// Work of a stream.
    Work,
    /// What XLA derives from the work, such as modules and steps.
    Derived,
}

impl Tracks {
    pub(super) fn number(&mut self, process: &Id, thread: &Id) -> u32 {
        // Most events are on the track of the one before.
        if let Some(last) = self.all.get(self.last as usize)
            && (&last.process, &last.thread) == (process, thread)
        {
            return self.last;
        }
        let next = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let key = (process.clone(), thread.clone());
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            let merged = self.merged_rank(process);
            let about = TrackArgs {
                rank: u64::from(merged).checked_sub(1),
                ..TrackArgs::default()
            };
            self.all.push(RawTrack {
                process: process.clone(),
                thread: thread.clone(),
                name: None,
                is_stream: false,
                has_category: false,
                stream: None,
                about,
                merged,
            });
        }
        self.last = number;
        number
    }

    /// Returns the number, from 1, of the rank that is named before the number of a process; or else 0.
    fn merged_rank(&mut self, process: &Id) -> u32 {
        let Id::Text(text) = process else { return 0 };
        let Some((rank, _)) = merged_process(text) else {
            return 0;
        };
        if let Some(known) = self.merged.get(rank) {
            return *known;
        }
        let number = u32::try_from(self.merged.len() + 1).unwrap_or(0);
        self.merged.insert(rank.to_owned(), number);
        number
    }

    /// Returns a number that differs between tracks of different ranks of a merged file: ids of one are no ids of another.
    pub(super) fn merged(&self, number: u32) -> u32 {
        self.all
            .get(number as usize)
            .map_or(0, |track| track.merged)
    }

    /// Makes rows of devices of the tracks whose process says so, and returns what is on each track; `None` for other tracks.
    pub(super) fn find_device_rows(&mut self) -> Vec<Option<Row>> {
        let mut rows = Vec::with_capacity(self.all.len());
        for track in &mut self.all {
            let named = self.process_names.get(&track.process);
            let text = match &track.process {
                Id::Text(text) => Some(text),
                _ => None,
            };
            let device = named.or(text).and_then(|name| DeviceRows::of(name));
            let Some(device) = device.filter(|_| !track.is_stream && !track.has_category) else {
                rows.push(None);
                continue;
            };
            track.is_stream = true;
            let of_row = match track.thread {
                Id::Number(device) => u32::try_from(device).ok(),
                _ => None,
            };
            track.about.ordinal = match device {
                DeviceRows::Of(ordinal) => Some(ordinal),
                DeviceRows::Each => of_row,
            };
            let name = track.name.as_deref().unwrap_or_default();
            let is_derived = [
                "Steps",
                "XLA Modules",
                "XLA Ops",
                "Framework Ops",
                "Source code",
            ]
            .contains(&name)
                || name.ends_with("Name Scope");
            rows.push(Some(if is_derived { Row::Derived } else { Row::Work }));
        }
        rows
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut RawTrack> {
        self.all.get_mut(number as usize)
    }

    pub(super) fn is_stream(&self, number: u32) -> bool {
        self.all
            .get(number as usize)
            .is_some_and(|track| track.is_stream)
    }

    /// Returns `true` if no category says what a track's events are, and its process has a name, which may be the name of a device.
    pub(super) fn may_be_of_device(&self, number: u32) -> bool {
        let track = self.all.get(number as usize);
        track.is_some_and(|track| {
            let is_named = matches!(track.process, Id::Text(_));
            !track.has_category && (is_named || self.process_names.contains_key(&track.process))
        })
    }

    pub(super) fn name_process(&mut self, process: Id, name: String) {
        self.process_names.insert(process, name);
    }

    /// Names a track; `stream` is the stream that it is beside.
    pub(super) fn name_thread(
        &mut self,
        process: &Id,
        thread: &Id,
        name: String,
        stream: Option<u64>,
        about: TrackArgs,
    ) {
        let number = self.number(process, thread);
        if let Some(track) = self.get_mut(number) {
            track.name = Some(name);
            track.stream = stream;
            let rank = about.rank.or(track.about.rank);
            track.about = TrackArgs { rank, ..about };
        }
    }

    /// Returns a track of the time line. Streams belong to the host of their rank, or else to the [`host`](Self::host) of the file,
    /// unless the file says another one.
    pub(super) fn track(
        &self,
        number: u32,
        kind: TrackKind,
        hosts: &HashMap<u32, Id>,
        host_of_file: Option<&Id>,
    ) -> Track {
        let mut track = Track::default();
        let Some(raw) = self.all.get(number as usize) else {
            return track;
        };
        track.kind = kind;
        track.id = match &raw.thread {
            Id::Number(id) => u64::try_from(*id).unwrap_or_default(),
            Id::Text(_) | Id::Missing => TEXT_IDS + u64::from(number),
        };
        let process = if raw.is_stream {
            // The process of a stream is the number of its device.
            let device = process_number(&raw.process);
            let device = device.and_then(|device| u32::try_from(device).ok());
            // `profiler-runtime` gives streams of unknown devices no ordinal.
            let is_unknown = raw.about.host.is_some() && raw.about.ordinal.is_none();
            let device = raw.about.ordinal.or(device).or(Some(0));
            track.device = device.filter(|_| !is_unknown);
            track.id = raw.stream.unwrap_or(track.id);
            let host = raw.about.host.map(Id::Number);
            host.or_else(|| hosts.get(&raw.merged).or(host_of_file).cloned())
                .unwrap_or_else(|| raw.process.clone())
        } else {
            raw.process.clone()
        };
        let number = process_number(&process).and_then(|number| u64::try_from(number).ok());
        track.process = number.unwrap_or_default();
        track.process_name = self
            .process_names
            .get(&process)
            .cloned()
            .unwrap_or_default();
        track.process = raw.about.process.unwrap_or(track.process);
        track.id = raw.about.thread.unwrap_or(track.id);
        track.rank = raw.about.rank;
        let what = if raw.is_stream { "stream" } else { "thread" };
        track.name = match (&raw.name, &raw.thread) {
            (Some(name), _) if !name.trim().is_empty() => name.trim().to_owned(),
            (_, Id::Text(text)) if !text.is_empty() => text.clone(),
            _ => format!("{what} {}", track.id),
        };
        track
    }

    /// Returns the rank of a track, if the file has several.
    pub(super) fn rank(&self, number: u32) -> Option<u64> {
        self.all.get(number as usize)?.about.rank
    }

    /// Returns the number that the file gives to the device of a stream.
    pub(super) fn device_in_file(&self, number: u32) -> Option<u32> {
        let device = process_number(&self.all.get(number as usize)?.process)?;
        u32::try_from(device).ok()
    }

    /// Gives work the device and the stream that it had before the file numbered them anew.
    pub(super) fn restore(&self, number: u32, work: &mut GpuWork) {
        let Some(track) = self.all.get(number as usize) else {
            return;
        };
        work.device = track.about.ordinal.unwrap_or(work.device);
        let stream = track
            .about
            .thread
            .and_then(|stream| u32::try_from(stream).ok());
        work.stream = stream.unwrap_or(work.stream);
    }

    /// Returns what a process is called beside others.
    pub(super) fn process_label(&self, process: &Id) -> String {
        match (self.process_names.get(process), process) {
            (Some(name), Id::Number(number)) => format!("{name} ({number})"),
            (None, Id::Number(number)) => format!("process {number}"),
            (_, Id::Text(text)) => text.clone(),
            (_, Id::Missing) => "no process".to_owned(),
        }
    }

    /// Returns the first process that has threads, of each rank of a merged file.
    pub(super) fn hosts_of_ranks(&self) -> HashMap<u32, Id> {
        let mut hosts = HashMap::new();
        for track in self
            .all
            .iter()
            .filter(|track| !track.is_stream && track.merged != 0)
        {
            hosts
                .entry(track.merged)
                .or_insert_with(|| track.process.clone());
        }
        hosts
    }

    /// Returns the first process that has threads.
    pub(super) fn host(&self) -> Option<&Id> {
        let host = self.all.iter().find(|track| !track.is_stream);
        host.map(|track| &track.process)
    }
}
