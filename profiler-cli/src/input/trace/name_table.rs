//! The table of names in the head of a file, which says once what the events of a name have in common.

use serde_json::Value;

use super::collect::Collector;
use super::document::Next;
use super::value::truncate;
use crate::input::InputError;
use crate::input::source::{Parsed, Source, parse};

/// The key of the table in files of `profiler-runtime` and the command line.
pub(super) const NAME_TABLE: &str = "nameTable";

/// What the table says of the name of events.
#[derive(Debug)]
pub(super) struct AboutName {
    /// The whole name, if it is another one.
    full: Option<String>,
    /// The source location, if it is known.
    location: Option<String>,
}

impl AboutName {
    /// Returns what an entry says, which is a list such as `["app::load", null]`.
    fn of(entry: &Value) -> Option<Self> {
        let text = |value: &Value| match value {
            Value::Null => Some(None),
            Value::String(text) => Some(Some(truncate(text.as_str().into()).into_owned())),
            _ => None,
        };
        let [full, location] = entry.as_array()?.as_slice() else {
            return None;
        };
        Some(Self {
            full: text(full)?,
            location: text(location)?,
        })
    }

    /// Returns the whole name and the location.
    pub(super) fn texts(&self) -> [Option<&str>; 2] {
        [&self.full, &self.location].map(Option::as_deref)
    }
}

/// Reads the table, one entry at a time. Events do not need it, so what is no entry is counted and left out.
pub(super) fn read(source: &mut Source<'_>, collector: &mut Collector) -> Result<(), InputError> {
    const MISSED: &str = "whole names of functions cannot be read";
    if source.peek_some()? != b'{' {
        collector.miss(MISSED);
        return source.ignore();
    }
    let mut next = Next::First;
    while next.item(source, b'}')? {
        let name = source.key()?;
        let about = match source.value(|text| parse::<Value>(text))? {
            Parsed::Value(entry) => AboutName::of(&entry),
            Parsed::Invalid(error) => return Err(source.error(&error)),
            Parsed::TooLarge => {
                source.skip()?;
                None
            }
        };
        match about {
            Some(about) => collector.add_name(truncate(name.into()).into_owned(), about)?,
            None => collector.miss(MISSED),
        }
    }
    Ok(())
}
