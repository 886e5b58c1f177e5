//! Values whose types the format does not fix.

use std::borrow::Cow;
use std::fmt;

use profiler_report::internal;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A text, or the text form of another value.
#[derive(Debug, Default)]
pub(super) struct Text<'t>(pub(super) Cow<'t, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::Text(text) => truncate(text),
            Value::Number(number) => number.to_string().into(),
            Value::Flag(flag) => flag.to_string().into(),
            Value::Other => Cow::default(),
        }))
    }
}

/// A value whose type the format does not fix. Lists and objects are read and forgotten.
#[derive(Debug)]
pub(super) enum Value<'v> {
    Text(Cow<'v, str>),
    Number(f64),
    Flag(bool),
    Other,
}

impl<'v> Value<'v> {
    pub(super) fn whole(&self) -> Option<i64> {
        match self {
            Self::Number(number) => whole(*number),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    pub(super) fn id(&self) -> Option<u64> {
        self.whole().and_then(|id| u64::try_from(id).ok())
    }

    pub(super) fn count(&self) -> Option<u32> {
        self.id().and_then(|count| u32::try_from(count).ok())
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn text(self) -> Option<Cow<'v, str>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn name(self) -> Option<Cow<'v, str>> {
        self.text().map(truncate)
    }

    pub(super) fn is_set(&self) -> bool {
        matches!(self, Self::Flag(true))
    }
}

/// Returns a number as a whole one, if it is that: identifiers are below 2⁵³.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the limit is checked before"
)]
pub(super) fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;

        impl<'de> Visitor<'de> for AnyValue {
            type Value = Value<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Value<'de>, E> {
                Ok(Value::Other)
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Value<'de>, E> {
                Ok(Value::Flag(flag))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Value<'de>, E> {
                Ok(Value::Number(number as f64))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Value<'de>, E> {
                Ok(Value::Number(number as f64))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Value<'de>, E> {
                Ok(Value::Number(number))
            }

            fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
                Ok(Value::Text(text.to_owned().into()))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
                Ok(Value::Text(text.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value<'de>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Value::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Value::Other)
            }
        }

        deserializer.deserialize_any(AnyValue)
    }
}

/// Truncates a text as names of the profiler are truncated, so that two names that differ only at their ends remain two.
pub(super) fn truncate(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => internal::truncate(text),
        Cow::Owned(text) => internal::truncate(&text).into_owned().into(),
    }
}
