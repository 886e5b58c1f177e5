//! The document around the events: one of them is in memory at a time.

use std::collections::BTreeMap;
use std::fmt;

use profiler_report::{DeviceProperties, ProcessGroup};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::collect::Collector;
use super::event::{Event, Value};
use super::time::Time;
use crate::input::InputError;
use crate::input::source::{Source, Watch};

/// Passes all events of a trace to the collector.
pub(super) fn read(
    source: Source<'_>,
    watch: &Watch,
    collector: &mut Collector,
) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_reader(source);
    let events = Events { collector, watch };
    json.deserialize_any(Document(events))?;
    watch.end_values();
    json.end()
}

struct Events<'c> {
    collector: &'c mut Collector,
    watch: &'c Watch,
}

impl Events<'_> {
    fn read<'de, A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(event) = {
            self.watch.begin_value();
            list.next_element::<Event>()?
        } {
            if let Err(error) = self.collector.add(event) {
                self.watch.fail(error);
                return Err(A::Error::custom("the event is not valid"));
            }
        }
        Ok(())
    }
}

/// An object with the key `traceEvents`, or a list of events alone.
struct Document<'c>(Events<'c>);

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, list: A) -> Result<(), A::Error> {
        self.0.read(list)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut has_events = false;
        while let Some(key) = {
            self.0.watch.begin_value();
            map.next_key::<String>()?
        } {
            let collector = &mut *self.0.collector;
            match key.as_str() {
                "traceEvents" => {
                    has_events = true;
                    map.next_value_seed(EventList(&mut self.0))?;
                }
                "baseTimeNanoseconds" => collector.base_ns = map.next_value::<Base>()?.0,
                "distributedInfo" => {
                    collector.job = map.next_value::<Job>()?;
                }
                "deviceProperties" => collector.devices = map.next_value::<Devices>()?.0,
                "profiler" => collector.writer = map.next_value()?,
                "schemaVersion" | "displayTimeUnit" | "traceName" => {
                    map.next_value::<IgnoredAny>()?;
                }
                _ if collector.writer.is_own => {
                    let value: Value = map.next_value()?;
                    if let Some(value) = value.text()
                        && let Err(error) = collector.add_pair(&key, value)
                    {
                        self.0.watch.fail(error);
                        return Err(A::Error::custom("the metadata is too long"));
                    }
                }
                _ => {
                    self.0.watch.end_values();
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if has_events {
            Ok(())
        } else {
            self.0.watch.fail(InputError::Unknown);
            Err(A::Error::custom(
                "neither `traceEvents` of a trace nor `rows` of a summary is in it",
            ))
        }
    }
}

struct EventList<'e, 'c>(&'e mut Events<'c>);

impl<'de> DeserializeSeed<'de> for EventList<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EventList<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.read(list)
    }
}

/// The time in nanoseconds that all others are relative to; `None` if it is not valid.
struct Base(Option<i64>);

/// What the process says of its job.
#[derive(Default)]
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
            // PyTorch shortens long lists in other places: then they are text.
            let ranks = group.get("ranks")?.as_array()?.iter();
            let ranks = ranks
                .map(serde_json::Value::as_u64)
                .collect::<Option<_>>()?;
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
#[derive(Default)]
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

impl Time {
    /// Returns the nanoseconds, if there are any.
    pub(super) const fn nanoseconds(self) -> Option<i64> {
        match self {
            Self::Nanoseconds(ns) => Some(ns),
            _ => None,
        }
    }
}
