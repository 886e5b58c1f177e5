//! The document around the events: one of them is in memory at a time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use profiler_report::{DeviceProperties, ProcessGroup};
use serde::de::{Deserialize, Deserializer};

use super::collect::Collector;
use super::event::Event;
use super::name_table::{self, NAME_TABLE};
use super::value::Value;
use crate::input::kind::Kind;
use crate::input::repair::{Repair, repair};
use crate::input::source::{Parsed, Source, TOO_LARGE, parse};
use crate::input::{InputError, Limits};

/// Passes all events of a trace to the collector: of an object with the key `traceEvents`, of a list alone, or of lines with an event
/// each. A file that ends too early, or has a mistake after which nothing is certain, is read up to there.
pub(super) fn read(source: &mut Source<'_>, collector: &mut Collector) -> Result<(), InputError> {
    let mut events = Events {
        collector,
        read: 0,
        invalid: 0,
        first: None,
    };
    let whole = events.document(source);
    let is_of_content = |error: &InputError| {
        matches!(
            error,
            InputError::Truncated | InputError::Damaged(_) | InputError::Json { .. }
        )
    };
    match whole {
        Err(error) if events.read > 0 && is_of_content(&error) => {
            let reason = format!("the rest of the file is not read: {}", at(&error));
            events.collector.lose(&reason, 0);
        }
        whole => whole?,
    }
    if let (count, Some(first)) = &source.mended {
        let reason = format!(
            "mistakes of the file were passed over (the first at {})",
            at(first)
        );
        events.collector.missing.insert(reason, *count);
    }
    events.finish()
}

/// Says what is wrong, and where.
fn at(error: &InputError) -> String {
    match error {
        InputError::Json {
            line,
            column,
            reason,
        } => format!("line {line}, column {column}: {reason}"),
        InputError::Truncated => "it is cut off".to_owned(),
        InputError::Damaged(error) => format!("it is damaged: {error}"),
        _ => error.to_string(),
    }
}

struct Events<'c> {
    collector: &'c mut Collector,
    read: u64,
    /// How many events could not be read, and what is wrong with the first.
    invalid: u64,
    first: Option<InputError>,
}

impl Events<'_> {
    fn document(&mut self, source: &mut Source<'_>) -> Result<(), InputError> {
        if source.peek_some()? == b'[' {
            self.list(source, true)?;
        } else if is_event(source)? {
            source.in_lines = true;
            while let Some(next) = source.peek()? {
                if next == b',' {
                    source.consume(1);
                } else {
                    self.event(source)?;
                }
            }
        } else if !object(source, self, false)? {
            return Err(InputError::Unknown);
        }
        if source.peek()?.is_some() {
            return Err(source.invalid("trailing characters"));
        }
        Ok(())
    }

    /// Reads a list of events. In the format, one that is the whole document may be without its end.
    fn list(&mut self, source: &mut Source<'_>, is_document: bool) -> Result<(), InputError> {
        let mut next = Next::First;
        loop {
            match next.item(source, b']') {
                Ok(true) => self.event(source)?,
                Err(InputError::Truncated)
                    if is_document && self.read > 0 && source.is_consumed() =>
                {
                    source.pass_over("the list has no end");
                    return Ok(());
                }
                done => return done.map(drop),
            }
        }
    }

    /// Reads an event. One that cannot be read says nothing of those after it, and is left out.
    fn event(&mut self, source: &mut Source<'_>) -> Result<(), InputError> {
        let collector = &mut *self.collector;
        collector.read_bytes = source.read_bytes();
        collector.count()?;
        let parsed = source.value(|text| {
            let (event, length) = parse::<Event<'_>>(text)?;
            Ok((collector.add(event), length))
        })?;
        match parsed {
            Parsed::Value(added) => {
                self.read += 1;
                return added;
            }
            Parsed::Invalid(error) => {
                // Where it is takes a search of the window: only the first is shown.
                let first = self.first.is_none().then(|| source.error(&error));
                if source.in_lines {
                    source.skip_line();
                // JSON of another form ends where its bracket is.
                } else if !source.skip_json() && !source.skip_invalid() {
                    return Err(source.error(&error));
                }
                self.first = self.first.take().or(first);
            }
            Parsed::TooLarge => {
                if source.in_lines {
                    source.skip_line();
                } else {
                    source.skip()?;
                }
                self.first.get_or_insert(TOO_LARGE);
            }
        }
        self.invalid += 1;
        Ok(())
    }

    /// Fails if there was no event that could be read, but others.
    fn finish(self) -> Result<(), InputError> {
        let Some(first) = self.first else {
            return Ok(());
        };
        if self.read == 0 {
            return Err(first);
        }
        let what = match &first {
            InputError::Json { .. } => format!("the first at {}", at(&first)),
            _ => format!("the first has more than {} bytes", Limits::EVENT_BYTES),
        };
        let reason = format!("events cannot be read and are left out ({what})");
        self.collector.lose(&reason, self.invalid);
        Ok(())
    }
}

/// Returns `true` if the content begins with an event: then lines with events follow.
fn is_event(source: &mut Source<'_>) -> Result<bool, InputError> {
    let beginning = source.beginning()?;
    let is_event = |text: &[u8]| parse::<Event<'_>>(text).is_ok_and(|(event, _)| event.phase != 0);
    let is_mended = || matches!(repair(beginning), Repair::Mended { text, .. } if is_event(&text));
    Ok(Kind::of(beginning) == Some(Kind::Object) && (is_event(beginning) || is_mended()))
}

/// The place in a list or an object.
pub(super) enum Next {
    First,
    Other,
}

impl Next {
    /// Goes to the next item. Returns `false` after the last, whose bracket is consumed.
    pub(super) fn item(&mut self, source: &mut Source<'_>, close: u8) -> Result<bool, InputError> {
        let before = std::mem::replace(self, Self::Other);
        if matches!(before, Self::First) {
            // The bracket that opens it.
            source.consume(1);
        }
        let next = source.peek_some()?;
        if next == close {
            source.consume(1);
            return Ok(false);
        }
        if matches!(before, Self::First) {
            return Ok(true);
        }
        if next == b'{' && close == b']' {
            source.pass_over("expected `,` or `]`");
            return Ok(true);
        }
        if next != b',' {
            return Err(source.invalid(if close == b']' {
                "expected `,` or `]`"
            } else {
                "expected `,` or `}`"
            }));
        }
        source.consume(1);
        if source.peek_some()? == close {
            source.pass_over("trailing comma");
            source.consume(1);
            return Ok(false);
        }
        Ok(true)
    }
}

/// Texts of the format itself, which are no pairs that a program added.
const OF_FORMAT: [&str; 3] = ["schemaVersion", "displayTimeUnit", "traceName"];

/// Reads an object, and one level of objects inside it: some tools write the document of another once more inside their own.
/// Returns `true` if there was a list of events.
fn object(
    source: &mut Source<'_>,
    events: &mut Events<'_>,
    is_inner: bool,
) -> Result<bool, InputError> {
    let mut has_events = false;
    let mut next = Next::First;
    while next.item(source, b'}')? {
        let key = source.key()?;
        let first = source.peek_some()?;
        let collector = &mut *events.collector;
        match key.as_str() {
            "traceEvents" => {
                has_events |= match first {
                    b'[' => {
                        events.list(source, false)?;
                        true
                    }
                    b'{' if !is_inner => inner(source, events)?,
                    _ if is_inner => {
                        source.ignore()?;
                        false
                    }
                    _ => return Err(source.invalid("expected a list of events")),
                }
            }
            "baseTimeNanoseconds" => collector.base_ns = source.other::<Base>()?.0,
            "distributedInfo" => collector.job = source.other()?,
            "deviceProperties" => collector.devices = source.other::<Devices>()?.0,
            "profiler" => collector.writer = source.other()?,
            // Whose file it is may be said later.
            NAME_TABLE => name_table::read(source, collector)?,
            _ if collector.writer.is_own && !OF_FORMAT.contains(&key.as_str()) => {
                let text = |text: &[u8]| {
                    let (value, length) = parse::<Value<'_>>(text)?;
                    Ok((value.text().map(Cow::into_owned), length))
                };
                if let Some(value) = source.whole(text)? {
                    collector.add_pair(&key, value)?;
                }
            }
            _ if first == b'{' && !is_inner => has_events |= inner(source, events)?,
            _ => source.ignore()?,
        }
    }
    Ok(has_events)
}

/// Reads an object inside the document. What it says of the file counts only if it has the events.
fn inner(source: &mut Source<'_>, events: &mut Events<'_>) -> Result<bool, InputError> {
    let collector = &*events.collector;
    let before = (
        collector.base_ns,
        collector.job.clone(),
        collector.devices.clone(),
        collector.writer.clone(),
    );
    let has_events = object(source, events, true)?;
    if !has_events {
        let collector = &mut *events.collector;
        (
            collector.base_ns,
            collector.job,
            collector.devices,
            collector.writer,
        ) = before;
    }
    Ok(has_events)
}

/// The time in nanoseconds that all others are relative to; `None` if it is not valid.
struct Base(Option<i64>);

/// What the process says of its job.
#[derive(Clone, Default)]
pub(super) struct Job {
    pub(super) rank: Option<u64>,
    pub(super) world_size: Option<u64>,
    pub(super) backend: Option<String>,
    pub(super) groups: Vec<ProcessGroup>,
}

impl<'de> Deserialize<'de> for Job {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let job = serde_json::Value::deserialize(deserializer)?;
        let number = |key| job.get(key).and_then(serde_json::Value::as_u64);
        let backend = job.get("backend").and_then(serde_json::Value::as_str);
        let group = |group: &serde_json::Value| {
            let name = group.get("pg_name")?.as_str()?.to_owned();
            // Some releases of PyTorch write the list as text, and shorten it (`[0, 1, ..., 7]`) where it is long.
            let ranks = match group.get("ranks")? {
                serde_json::Value::String(text) => serde_json::from_str(text).ok()?,
                ranks => Vec::deserialize(ranks).ok()?,
            };
            Some(ProcessGroup {
                name,
                ranks,
                ..ProcessGroup::default()
            })
        };
        let groups = job.get("pg_config").and_then(serde_json::Value::as_array);
        Ok(Self {
            rank: number("rank"),
            world_size: number("world_size"),
            backend: backend.filter(|text| *text != "unknown").map(str::to_owned),
            groups: groups.into_iter().flatten().filter_map(group).collect(),
        })
    }
}

/// The names and the properties of devices by their ordinals.
struct Devices(BTreeMap<u32, (String, DeviceProperties)>);

macro_rules! of_value {
    ($($type:ident($of:expr))*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                serde_json::Value::deserialize(deserializer).map(|value| Self(($of)(&value)))
            }
        }
    )*};
}

of_value! {
    Base(|value: &serde_json::Value| value.as_i64())
    Devices(|value: &serde_json::Value| {
        let device = |device: &serde_json::Value| {
            let ordinal = u32::try_from(device.get("id")?.as_u64()?).ok()?;
            let name = device.get("name")?.as_str()?.to_owned();
            Some((ordinal, (name, properties(device))))
        };
        value.as_array().into_iter().flatten().filter_map(device).collect()
    })
}

/// Returns the properties of a device under PyTorch's names.
fn properties(device: &serde_json::Value) -> DeviceProperties {
    let number = |key| device.get(key).and_then(serde_json::Value::as_u64);
    let count = |key| number(key).and_then(|count| u32::try_from(count).ok());
    let count = |key| count(key).unwrap_or_default();
    DeviceProperties {
        total_bytes: number("totalGlobalMem").unwrap_or_default(),
        compute: (count("computeMajor"), count("computeMinor")),
        threads_of_block: count("maxThreadsPerBlock"),
        threads_of_multiprocessor: count("maxThreadsPerMultiprocessor"),
        registers_of_block: count("regsPerBlock"),
        registers_of_multiprocessor: count("regsPerMultiprocessor"),
        warp_size: count("warpSize"),
        shared_bytes_of_block: count("sharedMemPerBlock"),
        most_shared_bytes_of_block: count("sharedMemPerBlockOptin"),
        shared_bytes_of_multiprocessor: count("sharedMemPerMultiprocessor"),
        multiprocessors: count("numSms"),
        blocks_of_multiprocessor: count("maxBlocksPerMultiprocessor"),
        reserved_shared_bytes_of_block: count("reservedSharedMemPerBlock"),
    }
}

/// What `profiler-runtime` and the command line say of a file that they wrote.
#[derive(Clone, Default)]
pub(super) struct Writer {
    /// One of them wrote it.
    pub(super) is_own: bool,
    /// Kernels were recorded, also if none ran.
    pub(super) has_kernels: bool,
    pub(super) step_num: Option<u64>,
    pub(super) cycle: Option<u64>,
    /// What is missing, and how often; 0 if that is not known.
    pub(super) missing: Vec<(String, u64)>,
}

impl<'de> Deserialize<'de> for Writer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let about = serde_json::Value::deserialize(deserializer)?;
        let name = about.get("name").and_then(serde_json::Value::as_str);
        if name != Some("profiler-runtime") {
            return Ok(Self::default());
        }
        let number = |key| about.get(key).and_then(serde_json::Value::as_u64);
        let listed = about.get("missing").and_then(serde_json::Value::as_array);
        let pair = |pair: &serde_json::Value| {
            Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_u64()?))
        };
        let kernels = about.get("kernels").and_then(serde_json::Value::as_bool);
        Ok(Self {
            is_own: true,
            has_kernels: kernels.unwrap_or_default(),
            step_num: number("step_num"),
            cycle: number("cycle"),
            missing: listed.into_iter().flatten().filter_map(pair).collect(),
        })
    }
}
