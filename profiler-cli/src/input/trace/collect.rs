//! Keeps what is needed of each event.

use std::collections::BTreeMap;

use profiler_runtime::report::{GpuWork, Replay, SliceEnding};

use super::counters::{CounterKey, counter_key};
use super::event::{Category, ConvertedArgs, Event, Id};
use super::names::{Names, location_in};
use super::nesting::NONE;
use super::time::Time;
use super::tracks::Tracks;
use super::work::work;
use crate::input::{InputError, Limits};

/// The most by which a slice is written shorter than it is.
const MAX_SHORTENED_NS: i64 = 1000;

/// The kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawKind {
    Function,
    Annotation,
    Launch,
    Future,
    /// One iteration of the program, and its number.
    Step(u64),
    GpuWork,
    GpuAnnotation,
}

impl RawKind {
    pub(super) const fn is_on_gpu(self) -> bool {
        matches!(self, Self::GpuWork | Self::GpuAnnotation)
    }
}

/// A span of time on a track. Times are in nanoseconds, as in the file.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub(super) track: u32,
    pub(super) name: u32,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) kind: RawKind,
    pub(super) external_id: u64,
    pub(super) correlation: u64,
    /// The correlation that CUPTI gave, if the file has another one.
    pub(super) cupti_correlation: Option<u64>,
    /// What the `parent` of others means: its own id, or else its external id.
    pub(super) id: u64,
    /// The `id` of the parent, if the file says it; 0 for none.
    pub(super) parent: Option<u64>,
    /// Without waits and children, if the file says so.
    pub(super) self_ns: Option<i64>,
    /// How long it took, if that is not the time between start and end.
    pub(super) measured_ns: Option<i64>,
    pub(super) ending: SliceEnding,
    /// The number of its category; [`NONE`] for operators and work on a device.
    pub(super) category: u32,
    /// The number of its shapes; [`NONE`] if it has none.
    pub(super) shapes: u32,
    /// The index of what it did on a device, in [`Collector::work`]; [`NONE`] if the file does not say.
    pub(super) work: u32,
    /// It stands for the time of a scope of `profiler-runtime`, which the file has too.
    pub(super) is_of_scope: bool,
    /// It is a poll of a future.
    pub(super) is_poll: bool,
    /// It is a launch that tables do not count.
    pub(super) is_not_counted: bool,
    /// Bytes allocated on the host without its children, and device memory in use afterwards, if the file says so.
    pub(super) own_memory: (Option<u64>, Option<i64>),
}

/// The beginning or the end of a span.
#[derive(Clone, Debug)]
pub(super) struct HalfSpan {
    pub(super) is_begin: bool,
    /// With the time of this half as `start` and `end`.
    pub(super) raw: Raw,
}

/// A change of the memory in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryChange {
    pub(super) track: u32,
    pub(super) at: i64,
    pub(super) bytes: i64,
    /// The ordinal of the device; `None` for host memory.
    pub(super) device: Option<u32>,
}

/// Everything that is kept of a file.
pub(super) struct Collector {
    limits: Limits,
    /// The number of the next event.
    next: u64,
    kept: u64,
    pub(super) base_ns: Option<i64>,
    pub(super) rank: Option<u64>,
    /// `true` if `profiler-runtime` wrote the file.
    pub(super) is_own: bool,
    /// `true` if the command line wrote it.
    pub(super) is_converted: bool,
    pub(super) names: Names,
    /// The different shapes, which are few.
    pub(super) shapes: Names,
    /// The different categories, which are few.
    pub(super) categories: Names,
    pub(super) replays: Vec<Replay>,
    /// The names of devices by their ordinals.
    pub(super) devices: BTreeMap<u32, String>,
    pub(super) tracks: Tracks,
    pub(super) raws: Vec<Raw>,
    pub(super) work: Vec<GpuWork>,
    pub(super) halves: Vec<HalfSpan>,
    pub(super) memory: Vec<MemoryChange>,
    pub(super) counters: BTreeMap<CounterKey, Vec<(i64, f64)>>,
    pub(super) missing: BTreeMap<String, u64>,
}

impl Collector {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            next: 0,
            kept: 0,
            base_ns: None,
            rank: None,
            is_own: false,
            is_converted: false,
            names: Names::default(),
            shapes: Names::default(),
            categories: Names::default(),
            replays: Vec::new(),
            devices: BTreeMap::new(),
            tracks: Tracks::default(),
            raws: Vec::new(),
            work: Vec::new(),
            halves: Vec::new(),
            memory: Vec::new(),
            counters: BTreeMap::new(),
            missing: BTreeMap::new(),
        }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, mut event: Event) -> Result<(), InputError> {
        let number = self.next;
        self.next += 1;
        if event.phase != b'C' {
            event.args.interpret_values();
        }
        if !self.is_converted {
            // Other programs may use these names for what they like.
            event.args.converted = ConvertedArgs::default();
        }
        match event.phase {
            b'X' => self.add_complete(&event, number),
            b'B' | b'E' => self.add_half(&event, number),
            b'M' => self.add_metadata(event),
            b'C' => self.add_counter(&event, number),
            b'i' | b'I' if event.category == Category::Replay => self.add_replay(&event, number),
            b'i' | b'I' if event.name == "[memory]" => self.add_memory(&event, number),
            b'b' | b'e' | b'S' | b'F' => {
                self.miss("asynchronous events (of the phases b, e, S and F) are not read");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts something that the time line lacks.
    pub(super) fn miss(&mut self, reason: &'static str) {
        match self.missing.get_mut(reason) {
            Some(count) => *count = count.saturating_add(1),
            None => _ = self.missing.insert(reason.to_owned(), 1),
        }
    }

    fn add_complete(&mut self, event: &Event, number: u64) -> Result<(), InputError> {
        if event.category == Category::Other || event.args.converted.is_stand_in {
            return Ok(());
        }
        let Some(start) = time(event, number, event.at, "time")? else {
            self.miss("events have no time");
            return Ok(());
        };
        let Some(mut duration) = time(event, number, event.duration, "duration")? else {
            self.miss("events have no duration");
            return Ok(());
        };
        if duration < 0 {
            return Err(invalid(
                event,
                number,
                "its duration is negative".to_owned(),
            ));
        }
        if self.is_converted
            && event.category != Category::GpuAnnotation
            && let Some(ns) = event.args.ns
        {
            // It is drawn a little shorter.
            duration = ns.clamp(duration, duration.saturating_add(MAX_SHORTENED_NS));
        }
        // Both are at most a fifth of what 64 bits hold… and one beginning at the end of time ends there.
        let raw = self.raw(event, start, start.saturating_add(duration))?;
        self.keep()?;
        if let Some(ns) = event.args.cuda.ns {
            self.add_gpu_time(event, &raw, ns)?;
        }
        self.raws.push(raw);
        Ok(())
    }

    /// Adds the GPU time of a scope that is not drawn: it was zero, or its start is not known. It becomes a span without
    /// length.
    fn add_gpu_time(&mut self, event: &Event, of: &Raw, ns: i64) -> Result<(), InputError> {
        let cuda = event.args.cuda;
        let (Some(device), Some(stream)) = (cuda.device, cuda.stream) else {
            return Ok(());
        };
        let track = self.track(&Id::Number(device), &Id::Number(stream))?;
        if let Some(track) = self.tracks.get_mut(track) {
            track.is_stream = true;
        }
        self.keep()?;
        self.raws.push(Raw {
            track,
            end: of.start,
            kind: RawKind::GpuAnnotation,
            correlation: 0,
            parent: None,
            self_ns: Some(cuda.self_ns.unwrap_or(ns)),
            measured_ns: (ns != 0).then_some(ns),
            ending: SliceEnding::Returned,
            category: NONE,
            shapes: NONE,
            work: NONE,
            own_memory: (None, None),
            ..of.clone()
        });
        Ok(())
    }

    fn add_half(&mut self, event: &Event, number: u64) -> Result<(), InputError> {
        let Some(at) = time(event, number, event.at, "time")? else {
            self.miss("events have no time");
            return Ok(());
        };
        let raw = self.raw(event, at, at)?;
        self.keep()?;
        self.halves.push(HalfSpan {
            is_begin: event.phase == b'B',
            raw,
        });
        Ok(())
    }

    fn raw(&mut self, event: &Event, start: i64, end: i64) -> Result<Raw, InputError> {
        let args = &event.args;
        let track = self.track(&event.process, &event.thread)?;
        if event.category.is_on_gpu()
            && let Some(track) = self.tracks.get_mut(track)
        {
            track.is_stream = true;
        }
        let named = args.full_name.as_deref();
        let is_launch = event.category == Category::Runtime;
        let called = args.call.as_deref();
        let called = called.filter(|_| is_launch && (self.is_own || self.is_converted));
        let text = named.or(called).unwrap_or(&event.name);
        let kind = kind(event);
        let text = if matches!(kind, RawKind::Step(_)) {
            "ProfilerStep*"
        } else {
            text
        };
        let name = self.names.number(text, || {
            let is_short = args.full_name.is_some();
            let short = if is_short { event.name.as_str() } else { "" };
            let location = || location_in(args.call_stack.as_deref().unwrap_or(text));
            let location = args.converted.location.clone().or_else(location);
            (short.to_owned(), location)
        })?;
        let shapes = args.shapes.as_deref();
        let shapes = match shapes.or(args.converted.shapes.as_deref()) {
            Some(shapes) => self.shapes.number(shapes, || (String::new(), None))?,
            None => NONE,
        };
        let category = match event.category {
            Category::Memcpy => Some("gpu_memcpy"),
            Category::Memset => Some("gpu_memset"),
            _ => event.category_text.as_deref(),
        };
        let category = match category {
            Some(text) => self.categories.number(text, || (String::new(), None))?,
            None => NONE,
        };
        let work = match work(event) {
            Some(work) => {
                self.work.push(work);
                u32::try_from(self.work.len() - 1).unwrap_or(NONE)
            }
            None => NONE,
        };
        Ok(Raw {
            track,
            name,
            start,
            end,
            kind,
            external_id: args.external_id.unwrap_or_default(),
            correlation: args.correlation.unwrap_or_default(),
            cupti_correlation: args.converted.correlation,
            id: args.converted.id.or(args.external_id).unwrap_or_default(),
            parent: args.parent,
            self_ns: args.self_ns,
            measured_ns: args.ns.filter(|_| kind == RawKind::GpuAnnotation),
            ending: args.ending,
            category,
            shapes,
            work,
            is_of_scope: args.is_of_scope,
            is_poll: args.converted.is_poll,
            is_not_counted: args.converted.is_not_counted,
            own_memory: args.converted.own_memory,
        })
    }

    /// Returns the number of a track.
    fn track(&mut self, process: &Id, thread: &Id) -> Result<u32, InputError> {
        let before = self.tracks.len();
        let number = self.tracks.number(process, thread);
        if self.tracks.len() > before {
            self.names.count(process.bytes() + thread.bytes())?;
        }
        Ok(number)
    }

    fn add_metadata(&mut self, event: Event) -> Result<(), InputError> {
        let Event {
            process,
            thread,
            args,
            ..
        } = event;
        let Some(name) = args.name else {
            return Ok(());
        };
        // A later name replaces the one before, which stays counted.
        match event.name.as_str() {
            "process_name" => {
                self.names.count(process.bytes() + name.len())?;
                self.tracks.name_process(process, name);
            }
            "thread_name" => {
                self.track(&process, &thread)?;
                self.names.count(name.len())?;
                let stream = args.work.stream.map(u64::from);
                self.tracks
                    .name_thread(&process, &thread, name, stream, args.converted.track);
            }
            _ => {}
        }
        Ok(())
    }

    fn add_counter(&mut self, event: &Event, number: u64) -> Result<(), InputError> {
        let Some(at) = time(event, number, event.at, "time")? else {
            self.miss("events have no time");
            return Ok(());
        };
        for (key, value) in &event.args.values {
            let key = counter_key(&event.name, key, self.is_own);
            self.sample(key, at, *value)?;
        }
        Ok(())
    }

    fn add_memory(&mut self, event: &Event, number: u64) -> Result<(), InputError> {
        let Some(at) = time(event, number, event.at, "time")? else {
            self.miss("events have no time");
            return Ok(());
        };
        let args = &event.args;
        let is_host = args.device_type.unwrap_or_default() == 0;
        let device = args.device.and_then(|device| u32::try_from(device).ok());
        let device = device.filter(|_| !is_host);
        let totals = [("allocated", args.allocated), ("reserved", args.reserved)];
        for (what, value) in totals {
            let key = CounterKey {
                name: format!(
                    "{} {what}",
                    if is_host {
                        "host memory"
                    } else {
                        "device memory"
                    }
                ),
                unit: "bytes",
                device,
                is_of_changes: true,
            };
            // PyTorch reserves no host memory, and writes zero.
            if let Some(value) = value.filter(|_| !is_host || what == "allocated") {
                self.sample(key, at, value)?;
            }
        }
        self.keep()?;
        let track = self.track(&event.process, &event.thread)?;
        self.memory.push(MemoryChange {
            track,
            at,
            bytes: args.bytes.unwrap_or_default(),
            device: if is_host {
                None
            } else {
                Some(device.unwrap_or_default())
            },
        });
        Ok(())
    }

    fn add_replay(&mut self, event: &Event, number: u64) -> Result<(), InputError> {
        let Some(at) = time(event, number, event.at, "time")? else {
            self.miss("events have no time");
            return Ok(());
        };
        let raw = self.raw(event, at, at)?;
        self.keep()?;
        let mut replay = Replay::default();
        replay.name = raw.name;
        replay.noticed_ns = at;
        replay.duration_ns = event.args.ns.unwrap_or_default().max(0);
        replay.self_ns = event
            .args
            .self_ns
            .unwrap_or_default()
            .clamp(0, replay.duration_ns);
        self.replays.push(replay);
        Ok(())
    }

    fn sample(&mut self, key: CounterKey, at: i64, value: f64) -> Result<(), InputError> {
        self.keep()?;
        if !self.counters.contains_key(&key) {
            self.names.count(key.name.len())?;
        }
        self.counters.entry(key).or_default().push((at, value));
        Ok(())
    }

    /// Counts something that stays in memory.
    fn keep(&mut self) -> Result<(), InputError> {
        self.kept += 1;
        if self.kept > self.limits.max_events {
            return Err(InputError::TooManyEvents {
                max_events: self.limits.max_events,
            });
        }
        Ok(())
    }
}

fn kind(event: &Event) -> RawKind {
    match event.category {
        category if category.is_gpu_work() => RawKind::GpuWork,
        Category::GpuAnnotation => RawKind::GpuAnnotation,
        Category::Runtime => RawKind::Launch,
        Category::Annotation => {
            let number = event.name.strip_prefix("ProfilerStep#");
            let number = number.and_then(|number| number.parse().ok());
            number.map_or(RawKind::Annotation, RawKind::Step)
        }
        _ if event.args.is_future => RawKind::Future,
        _ => RawKind::Function,
    }
}

/// Returns a time in nanoseconds; `None` if it is missing.
fn time(event: &Event, number: u64, time: Time, what: &str) -> Result<Option<i64>, InputError> {
    match time {
        Time::TooLarge(microseconds) => {
            let what = format!("its {what}, {microseconds:e} µs, is not between 1685 and 2255");
            Err(invalid(event, number, what))
        }
        time => Ok(time.nanoseconds()),
    }
}

fn invalid(event: &Event, number: u64, what: String) -> InputError {
    InputError::Time {
        event: number,
        name: event.name.clone(),
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds events to a reader that keeps few bytes of names.
    fn added(events: impl Iterator<Item = String>) -> Result<(), InputError> {
        let mut collector = Collector::new(Limits::DEFAULT);
        collector.names = Names::limited(1000);
        for event in events {
            collector.add(serde_json::from_str(&event).expect("an event"))?;
        }
        Ok(())
    }

    #[test]
    fn all_names_that_stay_in_memory_count() {
        let counter = r#"{"ph": "C", "name": "NAME", "ts": 1, "args": {"value": 1}}"#;
        let metadata =
            r#"{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "NAME"}}"#;
        let process =
            r#"{"ph": "M", "name": "process_name", "pid": "NAME", "args": {"name": "x"}}"#;
        let track = r#"{"ph": "X", "name": "f", "pid": 1, "tid": "NAME", "ts": 1, "dur": 1}"#;
        let memory = r#"{"ph": "i", "name": "[memory]", "pid": "NAME", "tid": 1, "ts": 1, "args": {"Bytes": 1}}"#;
        for event in [counter, metadata, process, track, memory] {
            let named = |number: usize| event.replace("NAME", &format!("{number:0100}"));
            assert!(added((0..5).map(named)).is_ok(), "{event}");
            let refused = added((0..20).map(named));
            assert!(
                matches!(refused, Err(InputError::TooManyNames { max_bytes: 1000 })),
                "{event}: {refused:?}"
            );
        }
        // Names that occur again take no memory.
        let same = |_| counter.replace("NAME", &"x".repeat(100));
        assert!(added((0..100).map(same)).is_ok());
    }
}
