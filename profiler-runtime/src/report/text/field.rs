//! A value with its key, as programs read it.

use std::borrow::Cow;
use std::fmt::Display;

use super::{csv, json};

/// A value with its key: a member of an object in JSON, a cell of a column in CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::report) struct Field {
    key: Cow<'static, str>,
    value: FieldValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FieldValue {
    /// A number or a boolean, or an object or array in JSON: written as it is.
    Raw(String),
    /// Written in quotes where the format needs them.
    Text(String),
    /// `null` in JSON, an empty cell in CSV.
    Missing,
}

impl Field {
    /// Creates a field of a number, a boolean, or a value that is JSON already.
    pub(in crate::report) fn raw(key: &'static str, value: impl Display) -> Self {
        Self::with(key, FieldValue::Raw(value.to_string()))
    }

    pub(in crate::report) fn nanoseconds(key: &'static str, ns: f64) -> Self {
        Self::raw(key, nanoseconds(ns))
    }

    pub(in crate::report) fn text(key: &'static str, text: &str) -> Self {
        Self::with(key, FieldValue::Text(text.to_owned()))
    }

    pub(in crate::report) fn missing(key: &'static str) -> Self {
        Self::with(key, FieldValue::Missing)
    }

    /// Creates a field as [`raw`](Self::raw) does, or without a value.
    pub(in crate::report) fn optional(key: &'static str, value: Option<impl Display>) -> Self {
        value.map_or_else(|| Self::missing(key), |value| Self::raw(key, value))
    }

    /// Creates a field as [`text`](Self::text) does, or without a value.
    pub(in crate::report) fn optional_text(key: &'static str, text: Option<&str>) -> Self {
        text.map_or_else(|| Self::missing(key), |text| Self::text(key, text))
    }

    fn with(key: &'static str, value: FieldValue) -> Self {
        Self {
            key: Cow::Borrowed(key),
            value,
        }
    }

    /// Removes the value.
    pub(in crate::report) fn without_value(self) -> Self {
        Self {
            value: FieldValue::Missing,
            ..self
        }
    }

    /// Prefixes the key: `cuda` makes `cuda_calls` of `calls`.
    pub(in crate::report) fn prefixed(self, prefix: &str) -> Self {
        Self {
            key: format!("{prefix}_{}", self.key).into(),
            ..self
        }
    }

    pub(in crate::report) fn key(&self) -> &str {
        &self.key
    }

    /// Returns the field as a member of a JSON object.
    pub(super) fn to_json(&self) -> String {
        let value = match &self.value {
            FieldValue::Raw(value) => value.clone(),
            FieldValue::Text(text) => json::string(text),
            FieldValue::Missing => "null".to_owned(),
        };
        format!("{}:{value}", json::string(&self.key))
    }

    /// Returns the value as a cell of a CSV line.
    pub(super) fn to_csv(&self) -> String {
        match &self.value {
            FieldValue::Raw(value) => value.clone(),
            FieldValue::Text(text) => csv::quoted(text),
            FieldValue::Missing => String::new(),
        }
    }
}

/// Formats nanoseconds with one decimal: means of short calls need it, and no clock has a finer resolution.
pub(in crate::report) fn nanoseconds(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_a_member_in_json_and_a_cell_in_csv() {
        let as_both = |field: &Field| (field.to_json(), field.to_csv());
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
