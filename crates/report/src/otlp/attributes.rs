//! The attributes of spans and resources.

use std::fmt::{Display, Write};

use crate::text::json::string;

/// Attributes as the members of a JSON array.
#[derive(Debug, Default)]
pub(super) struct Attributes(String);

impl Attributes {
    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.add(key, format_args!("{{\"stringValue\":{}}}", string(value)));
    }

    /// Adds an integer of 64 bits, which OTLP writes as a string. One that is too large for a signed integer becomes a
    /// text: readers would refuse the whole line.
    pub(super) fn number(&mut self, key: &str, value: impl Display) {
        let value = value.to_string();
        match value.parse::<i64>() {
            Ok(_) => self.add(key, format_args!("{{\"intValue\":\"{value}\"}}")),
            Err(_) => self.text(key, &value),
        }
    }

    /// Adds an integer as [`number`](Self::number) does, if there is one.
    pub(super) fn optional(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.number(key, value);
        }
    }

    /// Adds a list of texts, if it has any.
    pub(super) fn texts(&mut self, key: &str, values: impl IntoIterator<Item = String>) {
        let values = values.into_iter();
        let values: Vec<String> = values
            .map(|value| format!("{{\"stringValue\":{}}}", string(&value)))
            .collect();
        if !values.is_empty() {
            let values = values.join(",");
            self.add(
                key,
                format_args!("{{\"arrayValue\":{{\"values\":[{values}]}}}}"),
            );
        }
    }

    fn add(&mut self, key: &str, value: impl Display) {
        let comma = if self.0.is_empty() { "" } else { "," };
        let _ = write!(
            self.0,
            "{comma}{{\"key\":{},\"value\":{value}}}",
            string(key)
        );
    }

    pub(super) fn to_json(&self) -> String {
        format!("[{}]", self.0)
    }
}
