//! The document around the events: one of them is in memory at a time.

use std::collections::BTreeMap;
use std::fmt;

use profiler_runtime::session::{LostWork, Truncation};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::collect::Collector;
use super::event::Event;
use super::time::Time;
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
                "distributedInfo" => collector.rank = map.next_value::<Rank>()?.0,
                "deviceProperties" => collector.devices = map.next_value::<Devices>()?.0,
                "profiler" => {
                    let writer: Writer = map.next_value()?;
                    collector.is_own = writer.is_own;
                    collector.is_converted = writer.is_converted;
                    collector.missing.extend(writer.missing);
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

/// The rank of the process.
struct Rank(Option<u64>);

/// The names of devices by their ordinals.
struct Devices(BTreeMap<u32, String>);

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
    Rank(|value: &serde_json::Value| value.get("rank")?.as_u64())
    Devices(|value: &serde_json::Value| {
        let device = |device: &serde_json::Value| {
            let ordinal = u32::try_from(device.get("id")?.as_u64()?).ok()?;
            Some((ordinal, device.get("name")?.as_str()?.to_owned()))
        };
        value.as_array().into_iter().flatten().filter_map(device).collect()
    })
}

/// The writer of the file, and what `profiler-runtime` says is missing from a window that it wrote.
struct Writer {
    is_own: bool,
    /// The command line wrote the file.
    is_converted: bool,
    missing: BTreeMap<String, u64>,
}

impl<'de> Deserialize<'de> for Writer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let about = serde_json::Value::deserialize(deserializer)?;
        let name = about.get("name").and_then(serde_json::Value::as_str);
        let is_own = name == Some("profiler-runtime");
        let is_converted = name == Some("profiler");
        let truncation = Truncation::deserialize(&about).ok().filter(|_| is_own);
        let mut missing = BTreeMap::new();
        if let Some(truncation) = truncation {
            let counted = truncation.counted().into_iter();
            let counted = counted.filter(|(count, _)| *count > 0);
            missing.extend(counted.map(|(count, reason)| (reason.to_owned(), count)));
            if truncation.cut_short {
                // A number is not known.
                missing.insert(
                    "the session ended before the window was complete".to_owned(),
                    0,
                );
            }
        }
        let lost = about.get("lost_work").filter(|_| is_own);
        if let Some(lost) = lost.and_then(|lost| LostWork::deserialize(lost).ok()) {
            let counted = lost.counted().into_iter();
            let counted = counted.filter(|(count, _)| *count > 0);
            missing.extend(counted.map(|(count, reason)| (reason.to_owned(), count)));
        }
        let unplaced = about.get("unplaced").filter(|_| is_own);
        if let Some(count) = unplaced.and_then(serde_json::Value::as_u64)
            && count > 0
        {
            let reason = "GPU times are not shown, since it is not known when they began";
            missing.insert(reason.to_owned(), count);
        }
        let no_kernels = about.get("no_kernels_reason").filter(|_| is_own);
        if no_kernels.is_some_and(serde_json::Value::is_string) {
            missing.insert(
                "kernels were not recorded: `no_kernels_reason` in the file says why".to_owned(),
                0,
            );
        }
        let listed = about.get("missing").filter(|_| is_converted);
        let listed = listed.and_then(serde_json::Value::as_array);
        let pair = |pair: &serde_json::Value| {
            Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_u64()?))
        };
        missing.extend(listed.into_iter().flatten().filter_map(pair));
        Ok(Self {
            is_own,
            is_converted,
            missing,
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
