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
}

/// One track.
pub(super) struct RawTrack {
    process: Id,
    thread: Id,
    name: Option<String>,
    /// `true` if GPU work is on it.
    pub(super) is_stream: bool,
    /// The stream whose slices are on it, if the file says that it is beside that.
    stream: Option<u64>,
    /// What `profiler-runtime` wrote of it.
    about: TrackArgs,
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
            self.all.push(RawTrack {
                process: process.clone(),
                thread: thread.clone(),
                name: None,
                is_stream: false,
                stream: None,
                about: TrackArgs::default(),
            });
        }
        self.last = number;
        number
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
            track.about = about;
        }
    }

    /// Returns a track of the time line. Streams belong to the [`host`](Self::host), unless the file says another one.
    pub(super) fn track(&self, number: u32, kind: TrackKind, host_of_file: Option<&Id>) -> Track {
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
            let device = match &raw.process {
                Id::Number(device) => u32::try_from(*device).ok(),
                _ => None,
            };
            // `profiler-runtime` gives streams of unknown devices no ordinal.
            let is_unknown = raw.about.host.is_some() && raw.about.ordinal.is_none();
            let device = raw.about.ordinal.or(device).or(Some(0));
            track.device = device.filter(|_| !is_unknown);
            track.id = raw.stream.unwrap_or(track.id);
            let host = raw.about.host.map(Id::Number);
            host.or_else(|| host_of_file.cloned())
                .unwrap_or_else(|| raw.process.clone())
        } else {
            raw.process.clone()
        };
        if let Id::Number(process) = process {
            track.process = u64::try_from(process).unwrap_or_default();
        }
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
        match self.all.get(number as usize)?.process {
            Id::Number(device) => u32::try_from(device).ok(),
            _ => None,
        }
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

    /// Returns the first process that has threads.
    pub(super) fn host(&self) -> Option<&Id> {
        let host = self.all.iter().find(|track| !track.is_stream);
        host.map(|track| &track.process)
    }
}
