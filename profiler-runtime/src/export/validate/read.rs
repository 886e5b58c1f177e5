//! A trace, read event by event.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::check::Checker;

/// Gives the checker all of a trace. Fails where it is no JSON, or has no events.
pub(super) fn read(bytes: &[u8], checker: &mut Checker) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    json.deserialize_map(Whole(checker))?;
    json.end()
}

struct Whole<'c>(&'c mut Checker);

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the list `traceEvents`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(checker) = self;
        let mut has_events = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(Events(checker))?;
                has_events = true;
            } else {
                let value = map.next_value::<Value>()?;
                checker.top_level(&key, value, has_events);
            }
        }
        if has_events {
            Ok(())
        } else {
            Err(A::Error::missing_field("traceEvents"))
        }
    }
}

struct Events<'c>(&'c mut Checker);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element::<Map<String, Value>>()? {
            self.0.event(&event);
        }
        seq.next_element::<IgnoredAny>().map(drop)
    }
}
