//! Keeps what is needed of each event.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use profiler_report::internal::{NO_STEP, STEP, STEPS, step_number};
use profiler_report::{
    DeviceProperties, GpuWork, KernelGap, Replay, SliceDetails, SliceEnding, Wait,
};

use super::args::{self, Args, CudaArgs, FuturePart, OwnArgs};
use super::cost;
use super::counters::{CounterKey, counter_key};
use super::document::{Job, Writer};
use super::event::{Category, Event, Id};
use super::name_table::AboutName;
use super::names::{Names, location_in};
use super::nesting::NONE;
use super::raw::{Rare, Rares, Raw, RawKind};
use super::time::Time;
use super::tracks::Tracks;
use super::work::{wait, work};
use crate::input::{InputError, Limits};

/// The most by which a slice is written shorter than it is.
const MAX_SHORTENED_NS: i64 = 1000;

/// What stands for the names beyond the first [`Limits::NAMES`], as in the program's own summaries.
const OTHER_NAMES: &str = "(other names)";

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

/// The phases of the format, most of which say nothing of functions.
const PHASES: &[u8] = b"BEXiICbnestfPNODMVvRcSTpF(),=";

/// Everything that is kept of a file.
pub(super) struct Collector {
    limits: Limits,
    /// All events, also events of which nothing is kept.
    events: u64,
    /// What all that is kept takes in memory.
    memory: u64,
    /// What the file has so far, after decompression.
    pub(super) read_bytes: u64,
    pub(super) base_ns: Option<i64>,
    pub(super) job: Job,
    pub(super) writer: Writer,
    /// Pairs that the program added.
    pub(super) metadata: Vec<(String, String)>,
    pub(super) names: Names,
    /// What the head of the file says of the names of events.
    name_table: HashMap<String, AboutName>,
    /// The different shapes, which are few.
    pub(super) shapes: Names,
    /// Their numbers by the texts that the file has.
    shapes_of: HashMap<Box<str>, u32>,
    /// The different categories, which are few.
    pub(super) categories: Names,
    /// `true` if there are operators of PyTorch.
    pub(super) has_operators: bool,
    /// Their tracks are numbered as in [`Collector::tracks`].
    pub(super) replays: Vec<Replay>,
    /// The names and the properties of devices by their ordinals.
    pub(super) devices: BTreeMap<u32, (String, DeviceProperties)>,
    /// The rank and the ordinal of each device that the file says them of.
    pub(super) known_devices: BTreeMap<u32, (Option<u64>, u32)>,
    pub(super) details: Vec<SliceDetails>,
    /// The different texts of stacks.
    texts: Names,
    pub(super) waits: Vec<Wait>,
    pub(super) kernel_gaps: Vec<KernelGap>,
    pub(super) tracks: Tracks,
    pub(super) raws: Vec<Raw>,
    pub(super) rares: Rares,
    pub(super) work: Vec<GpuWork>,
    pub(super) halves: Vec<HalfSpan>,
    pub(super) memory_changes: Vec<MemoryChange>,
    pub(super) counters: BTreeMap<CounterKey, Vec<(i64, f64)>>,
    /// For each track of a thread, when it was on a processor, and ready for one, in percent from then on.
    pub(super) processor: BTreeMap<u32, Vec<(i64, [f64; 2])>>,
    pub(super) missing: BTreeMap<String, u64>,
    /// What of the file cannot be read, first.
    pub(super) lost: Option<String>,
}

impl Collector {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            events: 0,
            memory: 0,
            read_bytes: 0,
            base_ns: None,
            job: Job::default(),
            writer: Writer::default(),
            metadata: Vec::new(),
            names: Names::counted(OTHER_NAMES),
            name_table: HashMap::new(),
            shapes: Names::counted("(other shapes)"),
            shapes_of: HashMap::new(),
            categories: Names::counted("(other categories)"),
            has_operators: false,
            replays: Vec::new(),
            devices: BTreeMap::new(),
            known_devices: BTreeMap::new(),
            details: Vec::new(),
            texts: Names::default(),
            waits: Vec::new(),
            kernel_gaps: Vec::new(),
            tracks: Tracks::default(),
            raws: Vec::new(),
            rares: Rares::default(),
            work: Vec::new(),
            halves: Vec::new(),
            memory_changes: Vec::new(),
            counters: BTreeMap::new(),
            processor: BTreeMap::new(),
            missing: BTreeMap::new(),
            lost: None,
        }
    }

    /// Counts an event, whether it can be read or not.
    pub(super) const fn count(&mut self) -> Result<(), InputError> {
        self.events += 1;
        if self.events > self.limits.max_events {
            return Err(InputError::TooManyEvents {
                max_events: self.limits.max_events,
            });
        }
        Ok(())
    }

    /// Adds an event.
    pub(super) fn add(&mut self, mut event: Event<'_>) -> Result<(), InputError> {
        if event.phase != b'C' {
            event.args.interpret_values();
        }
        if !self.writer.is_own {
            event.args.own = OwnArgs::default();
        }
        match event.phase {
            b'X' => self.add_complete(&event),
            b'B' | b'E' => self.add_half(&event),
            b'M' => self.add_metadata(event),
            b'C' => self.add_counter(&event),
            b'i' | b'I' if event.category == Category::Replay && self.writer.is_own => {
                self.add_replay(&event)
            }
            // The arguments of each scope say it too.
            b'i' | b'I' if event.name == "[memory]" && self.writer.is_own => Ok(()),
            b'i' | b'I' if event.name == "[memory]" => self.add_memory(&event),
            b'b' | b'e' | b'S' | b'F' => {
                self.miss("asynchronous events (of the phases b, e, S and F) are not read");
                Ok(())
            }
            // Some tools end their lists with an empty event.
            0 if event.name.is_empty() && event.at == Time::Missing => Ok(()),
            phase if !PHASES.contains(&phase) => {
                self.lose(
                    "events have no phase (`ph`) of the format: they are left out",
                    1,
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts what of the file cannot be read.
    pub(super) fn lose(&mut self, reason: &str, count: u64) {
        self.lost.get_or_insert_with(|| reason.to_owned());
        let known = self.missing.entry(reason.to_owned()).or_default();
        *known = known.saturating_add(count);
    }

    /// Counts something that the time line lacks.
    pub(super) fn miss(&mut self, reason: &'static str) {
        match self.missing.get_mut(reason) {
            Some(count) => *count = count.saturating_add(1),
            None => _ = self.missing.insert(reason.to_owned(), 1),
        }
    }

    fn add_complete(&mut self, event: &Event<'_>) -> Result<(), InputError> {
        // What stands for kernels is in the file too, as the GPU times of scopes.
        if event.category == Category::Other || event.args.own.is_stand_in {
            return Ok(());
        }
        let Some(start) = self.time(event.at) else {
            return Ok(());
        };
        let Some(mut duration) = self.time(event.duration) else {
            return Ok(());
        };
        if duration < 0 {
            self.lose("events have a negative duration: they are left out", 1);
            return Ok(());
        }
        if !self.writer.is_own && event.category.is_gpu_work() && (start, duration) == (0, 0) {
            // Some releases of CUPTI lose the times of work.
            self.miss(
                "kernels, copies and fills have no time (`ts` and `dur` are 0): they are left out",
            );
            return Ok(());
        }
        if event.category != Category::GpuAnnotation
            && let Some(ns) = event.args.own.ns
        {
            // It is drawn a little shorter.
            duration = ns.clamp(duration, duration.saturating_add(MAX_SHORTENED_NS));
        }
        if event.category == Category::Wait {
            return self.add_wait(event, start, duration);
        }
        if event.category == Category::Idle && self.writer.is_own {
            return Ok(());
        }
        if event.category == Category::KernelGap && self.writer.is_own {
            return self.add_kernel_gap(event, start, duration);
        }
        // Both are at most a fifth of what 64 bits hold… and one beginning at the end of time ends there.
        self.keep(cost::EVENT)?;
        let raw = self.raw(event, start, start.saturating_add(duration))?;
        if let Some(ns) = event.args.own.cuda.ns {
            self.add_gpu_time(event, &raw, ns)?;
        }
        self.raws.push(raw);
        Ok(())
    }

    fn add_wait(&mut self, event: &Event<'_>, start: i64, duration: i64) -> Result<(), InputError> {
        let Some(work) = wait(event) else {
            self.miss("waits (of the category cuda_sync) have names that are not known");
            return Ok(());
        };
        self.keep(cost::NOTE)?;
        let known = self.names.len();
        let name = self.names.number(&event.name, || (String::new(), None))?;
        self.keep_names(known, event.name.len())?;
        self.waits.push(Wait {
            rank: event.args.own.track.rank,
            name,
            start_ns: start,
            duration_ns: duration,
            work,
            ..Wait::default()
        });
        Ok(())
    }

    fn add_kernel_gap(&mut self, event: &Event<'_>, start: i64, ns: i64) -> Result<(), InputError> {
        self.keep(cost::NOTE)?;
        self.text(event.name.len())?;
        self.kernel_gaps.push(KernelGap {
            rank: event.args.own.track.rank,
            start_ns: start,
            duration_ns: ns,
            reason: (&*event.name).into(),
            ..KernelGap::default()
        });
        Ok(())
    }

    /// Adds the GPU time of a scope that is not drawn: it was zero, or its start is not known. It becomes a span without
    /// length.
    fn add_gpu_time(&mut self, event: &Event<'_>, of: &Raw, ns: i64) -> Result<(), InputError> {
        let own = &event.args.own;
        let cuda = own.cuda;
        let Some(track) = self.stream(cuda)? else {
            return Ok(());
        };
        self.keep(cost::EVENT + cost::RARE)?;
        let start = of.start.saturating_add(cuda.after_ns.unwrap_or(0));
        let rare = self.rares.number(Rare {
            self_ns: Some(cuda.self_ns.unwrap_or(ns)),
            measured_ns: (ns != 0).then_some(ns),
            uncertainty_ns: own.uncertainty_ns,
            moved_ns: own.moved_ns,
            ..Rare::default()
        });
        self.raws.push(Raw {
            track,
            start,
            end: start,
            kind: RawKind::GpuScope,
            correlation: 0,
            ending: SliceEnding::Returned,
            category: NONE,
            shapes: NONE,
            work: NONE,
            rare,
            ..of.clone()
        });
        Ok(())
    }

    fn add_half(&mut self, event: &Event<'_>) -> Result<(), InputError> {
        let Some(at) = self.time(event.at) else {
            return Ok(());
        };
        self.keep(cost::HALF)?;
        let raw = self.raw(event, at, at)?;
        self.halves.push(HalfSpan {
            is_begin: event.phase == b'B',
            raw,
        });
        Ok(())
    }

    fn raw(&mut self, event: &Event<'_>, start: i64, end: i64) -> Result<Raw, InputError> {
        let args = &event.args;
        self.has_operators |= event.category == Category::Operator;
        let track = self.track(&event.process, &event.thread)?;
        if event.category.is_on_gpu()
            && let Some(track) = self.tracks.get_mut(track)
        {
            track.is_stream = true;
        }
        let text = event.category_text.as_deref();
        if (event.category != Category::Function || text == Some("python_function"))
            && let Some(track) = self.tracks.get_mut(track)
        {
            track.has_category = true;
        }
        let kind = kind(event, self.writer.is_own);
        let (mut step, mut step_thread) = (0, None);
        if kind == RawKind::Step {
            step = step_number(&event.name).unwrap_or_default();
            step_thread = self.thread_of_step(event)?;
        }
        let own = [&args.own.full_name, &args.own.location].map(Option::as_deref);
        // A launch that tables do not count may have the name of a function.
        let has_entry = self.writer.is_own && own == [None; 2] && !args.own.is_not_counted;
        let entry = has_entry.then(|| self.name_table.get(&*event.name));
        let [named, location] = entry.flatten().map_or(own, AboutName::texts);
        let is_launch = event.category == Category::Runtime;
        let called = args.own.call.as_deref().filter(|_| is_launch);
        let text = named.or(called).unwrap_or(&event.name);
        let text = if kind == RawKind::Step { STEPS } else { text };
        let (known, bytes) = (self.names.len(), text.len());
        let name = self.names.number(text, || {
            // A name that the tools would take for a step is written in another way.
            let is_short = named.is_some_and(|whole| whole.replace(STEP, NO_STEP) != event.name);
            let short = if is_short { &*event.name } else { "" };
            let in_frame = || location_in(args.call_stack.as_deref().unwrap_or(text));
            let location = location.map(str::to_owned).or_else(in_frame);
            (short.to_owned(), location)
        })?;
        self.keep_names(known, bytes)?;
        let shapes = self.shapes(args)?;
        let category = match event.category {
            Category::Memcpy => Some("gpu_memcpy"),
            Category::Memset => Some("gpu_memset"),
            _ if kind == RawKind::Step => Some("user_annotation"),
            _ => event.category_text.as_deref(),
        };
        let category = match category {
            Some(text) => {
                let known = self.categories.len();
                let number = self.categories.number(text, || (String::new(), None))?;
                self.keep(cost::TEXT * (self.categories.len() - known) as u64)?;
                number
            }
            None => NONE,
        };
        let work = match work(event) {
            Some(work) => {
                self.keep(cost::WORK)?;
                self.work.push(work);
                u32::try_from(self.work.len() - 1).unwrap_or(NONE)
            }
            None => NONE,
        };
        let rare = Rare {
            step,
            step_thread,
            cupti_correlation: args.own.correlation,
            cupti_stream: args.own.stream,
            id: args.own.id,
            parent: args.own.parent,
            self_ns: args.own.self_ns,
            measured_ns: args.own.ns.filter(|_| kind == RawKind::GpuScope),
            uncertainty_ns: args.own.uncertainty_ns.filter(|_| kind.is_on_gpu()),
            moved_ns: args.own.moved_ns.filter(|_| kind.is_on_gpu()),
            details: self.details(event)?,
            since_entered_ns: args.own.since_entered_ns.map(|ns| ns.max(0)),
            own_memory: args.own.own_memory,
        };
        let rare = self.rares.number(rare);
        let step_cost = if kind == RawKind::Step { cost::STEP } else { 0 };
        self.keep(step_cost + if rare == 0 { 0 } else { cost::RARE })?;
        Ok(Raw {
            track,
            name,
            start,
            end,
            kind,
            external_id: args.external_id.unwrap_or_default(),
            correlation: args.correlation.unwrap_or_default(),
            is_launch: args.own.is_not_counted || args.own.id.is_some(),
            is_not_counted: args.own.is_not_counted,
            ending: args.own.ending,
            category,
            shapes,
            work,
            rare,
        })
    }

    /// Counts the name of an event, if it is a new one: `known` is how many there were before.
    fn keep_names(&mut self, known: usize, bytes: usize) -> Result<(), InputError> {
        if self.names.len() > known {
            self.keep(cost::NAME + cost::NAME_BYTE * bytes as u64)?;
        }
        Ok(())
    }

    /// Counts the bytes of another text that stays in memory.
    fn text(&mut self, bytes: usize) -> Result<(), InputError> {
        self.names.count(bytes)?;
        self.keep(cost::TEXT_BYTE * bytes as u64)
    }

    /// Returns the number of the shapes of an event; [`NONE`] if it has none.
    fn shapes(&mut self, args: &Args<'_>) -> Result<u32, InputError> {
        let known = args.input_dims.and_then(|json| self.shapes_of.get(json));
        let number = match (known, args.input_dims) {
            (Some(number), _) => *number,
            (None, Some(json)) => {
                let number = match args::shapes(json) {
                    Some(text) => self.shapes.number(&text, || (String::new(), None))?,
                    None => NONE,
                };
                self.text(json.len())?;
                self.keep(cost::TEXT)?;
                self.shapes_of.insert(json.into(), number);
                number
            }
            (None, None) => NONE,
        };
        match &args.own.shapes {
            Some(text) if number == NONE => {
                let known = self.shapes.len();
                let number = self.shapes.number(text, || (String::new(), None))?;
                self.keep(cost::TEXT * (self.shapes.len() - known) as u64)?;
                Ok(number)
            }
            _ => Ok(number),
        }
    }

    /// Keeps what `profiler-runtime` writes of some scopes only.
    fn details(&mut self, event: &Event<'_>) -> Result<Option<u32>, InputError> {
        let args = &event.args;
        if !self.writer.is_own {
            return Ok(None);
        }
        let mut text = |text: &Option<Cow<'_, str>>| match text {
            Some(text) => self.texts.shared(text).map(Some),
            None => Ok(None),
        };
        let mut details = SliceDetails {
            call_stack: text(&args.call_stack)?,
            native_stack: text(&args.own.native_stack)?,
            no_gpu_time: text(&args.own.no_gpu_time)?,
            is_bound: args.own.is_bound,
            ..SliceDetails::default()
        };
        if let Some((memory, own_host_net)) = args.own.memory {
            (details.memory, details.own_host_net) = (Some(memory), own_host_net);
        }
        if details == SliceDetails::default() {
            return Ok(None);
        }
        self.keep(cost::DETAILS)?;
        self.details.push(details);
        Ok(u32::try_from(self.details.len() - 1).ok())
    }

    /// Returns the number of a track.
    fn track(&mut self, process: &Id, thread: &Id) -> Result<u32, InputError> {
        let before = self.tracks.len();
        let number = self.tracks.number(process, thread);
        if self.tracks.len() > before {
            self.keep(cost::TRACK)?;
            self.text(process.bytes() + thread.bytes())?;
        }
        Ok(number)
    }

    /// Returns the track of the thread that ended a step, if the file says it.
    fn thread_of_step(&mut self, event: &Event<'_>) -> Result<Option<u32>, InputError> {
        let thread = event.args.own.track.thread;
        let Some(thread) = thread.and_then(|thread| i64::try_from(thread).ok()) else {
            return Ok(None);
        };
        self.track(&event.process, &Id::Number(thread)).map(Some)
    }

    /// Returns the track of a stream that an event on a thread names.
    fn stream(&mut self, cuda: CudaArgs) -> Result<Option<u32>, InputError> {
        let (Some(device), Some(stream)) = (cuda.device, cuda.stream) else {
            return Ok(None);
        };
        let number = self.track(&Id::Number(device), &Id::Number(stream))?;
        if let Some(track) = self.tracks.get_mut(number) {
            track.is_stream = true;
        }
        Ok(Some(number))
    }

    fn add_metadata(&mut self, event: Event<'_>) -> Result<(), InputError> {
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
        match &*event.name {
            "process_name" => {
                self.keep(cost::PROCESS)?;
                self.text(process.bytes() + name.len())?;
                if let Id::Number(device) = process
                    && let Ok(device) = u32::try_from(device)
                    && let Some(ordinal) = args.own.track.ordinal
                {
                    let known = (args.own.track.rank, ordinal);
                    self.known_devices.insert(device, known);
                }
                self.tracks.name_process(process, name.into_owned());
            }
            "thread_name" => {
                self.track(&process, &thread)?;
                self.text(name.len())?;
                let stream = args.work.stream.map(u64::from);
                self.tracks.name_thread(
                    &process,
                    &thread,
                    name.into_owned(),
                    stream,
                    args.own.track,
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn add_counter(&mut self, event: &Event<'_>) -> Result<(), InputError> {
        let Some(at) = self.time(event.at) else {
            return Ok(());
        };
        if event.category == Category::Processor && self.writer.is_own {
            return self.add_processor(event, at);
        }
        for (key, value) in &event.args.values {
            let mut key = counter_key(&event.name, key, self.writer.is_own);
            if !self.writer.is_own {
                key.process = event.process.clone();
                key.id = event.id.clone();
            }
            self.sample(key, at, *value)?;
        }
        Ok(())
    }

    fn add_processor(&mut self, event: &Event<'_>, at: i64) -> Result<(), InputError> {
        self.keep(cost::VALUE)?;
        let track = self.track(&event.process, &event.thread)?;
        let value = |key: &str| {
            let mut values = event.args.values.iter();
            values
                .find(|(known, _)| known == key)
                .map_or(0.0, |(_, value)| *value)
        };
        let sample = (at, ["running", "ready"].map(value));
        self.processor.entry(track).or_default().push(sample);
        Ok(())
    }

    fn add_memory(&mut self, event: &Event<'_>) -> Result<(), InputError> {
        let Some(at) = self.time(event.at) else {
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
                unit: "bytes".to_owned(),
                device,
                process: event.process.clone(),
                id: Id::Missing,
            };
            // PyTorch reserves no host memory, and writes zero.
            if let Some(value) = value.filter(|_| !is_host || what == "allocated") {
                self.sample(key, at, value)?;
            }
        }
        self.keep(cost::VALUE)?;
        let track = self.track(&event.process, &event.thread)?;
        self.memory_changes.push(MemoryChange {
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

    fn add_replay(&mut self, event: &Event<'_>) -> Result<(), InputError> {
        let Some(at) = self.time(event.at) else {
            return Ok(());
        };
        self.keep(cost::NOTE)?;
        let raw = self.raw(event, at, at)?;
        let mut replay = Replay::default();
        replay.name = raw.name;
        replay.noticed_ns = at;
        replay.track = self.stream(event.args.own.cuda)?;
        replay.duration_ns = event.args.own.ns.unwrap_or_default().max(0);
        replay.self_ns = event
            .args
            .own
            .self_ns
            .unwrap_or_default()
            .clamp(0, replay.duration_ns);
        self.replays.push(replay);
        Ok(())
    }

    /// Adds a pair that the program added to the file.
    pub(super) fn add_pair(&mut self, key: &str, value: String) -> Result<(), InputError> {
        self.count()?;
        self.keep(cost::PAIR)?;
        self.text(key.len() + value.len())?;
        // Keys that mean something in the format are written so.
        let key = key.strip_prefix("metadata.").unwrap_or(key);
        self.metadata.push((key.to_owned(), value));
        Ok(())
    }

    /// Keeps what the head of the file says of a name.
    pub(super) fn add_name(&mut self, name: String, about: AboutName) -> Result<(), InputError> {
        self.count()?;
        self.keep(cost::PAIR)?;
        let texts = about.texts().map(|text| text.map_or(0, str::len));
        self.text(name.len() + texts.iter().sum::<usize>())?;
        self.name_table.insert(name, about);
        Ok(())
    }

    fn sample(&mut self, mut key: CounterKey, at: i64, value: f64) -> Result<(), InputError> {
        if self.counters.len() >= Limits::NAMES && !self.counters.contains_key(&key) {
            key = CounterKey {
                name: "(other counters)".to_owned(),
                ..CounterKey::default()
            };
        }
        self.count()?;
        self.keep(cost::VALUE)?;
        if !self.counters.contains_key(&key) {
            self.keep(cost::COUNTER)?;
            self.text(key.name.len() + key.unit.len() + key.process.bytes() + key.id.bytes())?;
        }
        self.counters.entry(key).or_default().push((at, value));
        Ok(())
    }

    /// Says what became of names beyond the limit.
    pub(super) fn note_other_names(&mut self) {
        let beyond = self.names.beyond();
        if beyond > 0 {
            let reason = format!(
                "events have names beyond the first {} different ones: they are one row, {OTHER_NAMES}",
                Limits::NAMES
            );
            self.missing.insert(reason, beyond);
        }
    }

    /// Returns a time or a duration in nanoseconds, or counts the event as one that is left out.
    fn time(&mut self, time: Time) -> Option<i64> {
        let what = match time {
            Time::Nanoseconds(ns) => return Some(ns),
            Time::Missing => "no time or no duration",
            Time::TooLarge => "a time or a duration outside of the years 1685 to 2255",
        };
        self.lose(&format!("events have {what}: they are left out"), 1);
        None
    }

    /// Counts something that stays in memory, by what it takes when the time line is made.
    fn keep(&mut self, bytes: u64) -> Result<(), InputError> {
        self.memory += bytes;
        if self.memory > Limits::MEMORY {
            let max_bytes = Limits::MEMORY_PER_BYTE.saturating_mul(self.read_bytes);
            let max_bytes = max_bytes.max(Limits::MEMORY);
            if self.memory > max_bytes {
                return Err(InputError::TooMuchMemory { max_bytes });
            }
        }
        Ok(())
    }
}

fn kind(event: &Event<'_>, is_own: bool) -> RawKind {
    match event.category {
        category if category.is_gpu_work() => RawKind::GpuWork,
        Category::GpuAnnotation if is_own && !event.args.own.is_range => RawKind::GpuScope,
        Category::GpuAnnotation => RawKind::GpuRange,
        Category::Runtime => RawKind::Launch,
        _ if event.args.own.future == Some(FuturePart::Poll) => RawKind::Poll,
        _ if event.args.own.future == Some(FuturePart::Whole) => RawKind::Future,
        // PyTorch 1.8 wrote steps with the category of operators.
        _ if step_number(&event.name).is_some() => RawKind::Step,
        Category::Annotation => RawKind::Annotation,
        _ => RawKind::Function,
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
    fn what_is_kept_is_limited_by_the_memory_that_it_takes() {
        let events = [
            r#"{"ph": "X", "name": "f", "ts": 1, "dur": 1}"#,
            r#"{"ph": "B", "ts": 1}"#,
            r#"{"ph": "C", "name": "c", "ts": 1, "args": {"a": 1}}"#,
            r#"{"ph": "M", "name": "thread_name", "tid": 1, "args": {"name": "a"}}"#,
        ];
        for event in events {
            let added = |read_bytes| {
                let mut collector = Collector::new(Limits::DEFAULT);
                collector.memory = Limits::MEMORY;
                collector.read_bytes = read_bytes;
                collector.add(serde_json::from_str(event).expect("an event"))
            };
            let refused = added(1 << 20);
            let limit = Limits::MEMORY;
            assert!(
                matches!(refused, Err(InputError::TooMuchMemory { max_bytes }) if max_bytes == limit),
                "{event}: {refused:?}"
            );
            // Of a larger file, more is kept.
            assert!(added(1 << 28).is_ok(), "{event}");
        }
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
