//! Reading a trace event by event; at most one event is in memory.

use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::check::Checker;
use super::source::{ProgressReader, ReadProgress};

/// Passes the whole trace to the checker. Fails if it is not valid JSON, has no events, or exceeds a limit.
pub(super) fn read(
    trace: impl Read,
    progress: &ReadProgress,
    checker: &mut Checker,
) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_reader(ProgressReader::new(trace, progress));
    json.deserialize_map(Whole { checker, progress })?;
    json.end()
}

struct Whole<'c> {
    checker: &'c mut Checker,
    progress: &'c ReadProgress,
}

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the list `traceEvents`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { checker, progress } = self;
        let mut has_events = false;
        while let Some(key) = {
            progress.begin_value();
            map.next_key::<String>()?
        } {
            if key == "traceEvents" {
                map.next_value_seed(EventList { checker, progress })?;
                has_events = true;
            } else if Checker::wants(&key) {
                let value = map.next_value::<Value>()?;
                let has_bracket = value.to_string().contains(']');
                checker.top_level(&key, Some(value), has_events && has_bracket);
            } else {
                let has_bracket = map.next_value_seed(HasBracket(progress))?;
                checker.top_level(&key, None, has_events && has_bracket);
            }
        }
        if has_events {
            Ok(())
        } else {
            Err(A::Error::missing_field("traceEvents"))
        }
    }
}

struct EventList<'c> {
    checker: &'c mut Checker,
    progress: &'c ReadProgress,
}

impl<'de> DeserializeSeed<'de> for EventList<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EventList<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { checker, progress } = self;
        while let Some(event) = {
            progress.begin_value();
            seq.next_element::<Map<String, Value>>()?
        } {
            if !progress.count_event() {
                return Err(A::Error::custom("too many events"));
            }
            checker.event(&event);
        }
        Ok(())
    }
}

/// Reads a value without keeping it. Returns `true` if it contains a `]`.
#[derive(Clone, Copy)]
struct HasBracket<'p>(&'p ReadProgress);

impl<'de> DeserializeSeed<'de> for HasBracket<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        self.0.skip_value();
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for HasBracket<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(text.contains(']'))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        self.0.skip_list();
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut has_bracket = false;
        while let Some(key) = map.next_key_seed(self)? {
            has_bracket |= key;
            has_bracket |= map.next_value_seed(self)?;
        }
        Ok(has_bracket)
    }
}
