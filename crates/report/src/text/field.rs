//! A value with its key, as programs read it.

use std::borrow::Cow;
use std::fmt::Display;

/// A value with its key: a member of an object in JSON, a cell of a column in CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    key: Cow<'static, str>,
    value: FieldValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldValue {
    /// A number or a boolean, or an object or array in JSON: written as it is.
    Raw(String),
    /// Written in quotes where the format needs them.
    Text(String),
    /// `null` in JSON, an empty cell in CSV.
    Missing,
}

impl Field {
    /// Creates a field of a number, a boolean, or a value that is JSON already.
    pub(crate) fn raw(key: &'static str, value: impl Display) -> Self {
        Self::with(key, FieldValue::Raw(value.to_string()))
    }

    pub(crate) fn nanoseconds(key: &'static str, ns: f64) -> Self {
        Self::raw(key, nanoseconds(ns))
    }

    pub(crate) fn text(key: &'static str, text: &str) -> Self {
        Self::with(key, FieldValue::Text(text.to_owned()))
    }

    pub(crate) fn missing(key: &'static str) -> Self {
        Self::with(key, FieldValue::Missing)
    }

    /// Creates a field as [`raw`](Self::raw) does, or without a value.
    pub(crate) fn optional(key: &'static str, value: Option<impl Display>) -> Self {
        value.map_or_else(|| Self::missing(key), |value| Self::raw(key, value))
    }

    /// Creates a field as [`text`](Self::text) does, or without a value.
    pub(crate) fn optional_text(key: &'static str, text: Option<&str>) -> Self {
        text.map_or_else(|| Self::missing(key), |text| Self::text(key, text))
    }

    fn with(key: &'static str, value: FieldValue) -> Self {
        Self {
            key: Cow::Borrowed(key),
            value,
        }
    }

    pub(crate) const fn has_value(&self) -> bool {
        !matches!(self.value, FieldValue::Missing)
    }

    /// Removes the value.
    pub(crate) fn without_value(self) -> Self {
        Self {
            value: FieldValue::Missing,
            ..self
        }
    }

    /// Prefixes the key: `cuda` makes `cuda_calls` of `calls`.
    pub(crate) fn prefixed(self, prefix: &str) -> Self {
        Self {
            key: format!("{prefix}_{}", self.key).into(),
            ..self
        }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(super) const fn value(&self) -> &FieldValue {
        &self.value
    }
}

/// Formats nanoseconds with one decimal: means of short calls need it, and no clock has a finer resolution.
pub(crate) fn nanoseconds(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{csv, json};

    #[test]
    fn a_field_is_a_member_in_json_and_a_cell_in_csv() {
        let as_both = |field: &Field| (json::member(field), csv::cell(field));
        for (field, json, csv) in [
            (Field::raw("calls", 7), "\"calls\":7", "7"),
            (
                Field::nanoseconds("total_ns", 1.25),
                "\"total_ns\":1.2",
                "1.2",
            ),
            (
                Field::text("name", "a,\"b\""),
                "\"name\":\"a,\\\"b\\\"\"",
                "\"a,\"\"b\"\"\"",
            ),
            (Field::optional("share", None::<u64>), "\"share\":null", ""),
            (
                Field::optional_text("verdict", Some("x")),
                "\"verdict\":\"x\"",
                "x",
            ),
            (
                Field::raw("calls", 7).prefixed("cuda"),
                "\"cuda_calls\":7",
                "7",
            ),
            (Field::raw("calls", 7).without_value(), "\"calls\":null", ""),
        ] {
            assert_eq!(as_both(&field), (json.to_owned(), csv.to_owned()));
        }
    }
}
