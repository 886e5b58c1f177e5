//! Names of events, each kept once.

use std::collections::HashMap;
use std::sync::Arc;

use profiler_report::SliceName;

use crate::input::{InputError, Limits};

/// The different names, numbered in the order in which they first occur.
pub(super) struct Names {
    numbers: HashMap<Arc<str>, u32>,
    all: Vec<SliceName>,
    bytes: usize,
    max_bytes: usize,
    max_count: usize,
    /// What stands for those beyond the first `max_count`.
    others: &'static str,
    /// How many events have one of those.
    beyond: u64,
}

impl Default for Names {
    fn default() -> Self {
        Self::limited(Limits::NAMES_BYTES)
    }
}

impl Names {
    /// Creates an empty list for names of at most this many bytes.
    pub(super) fn limited(max_bytes: usize) -> Self {
        Self {
            numbers: HashMap::new(),
            all: Vec::new(),
            bytes: 0,
            max_bytes,
            max_count: usize::MAX,
            others: "",
            beyond: 0,
        }
    }

    /// Creates an empty list for the first [`Limits::NAMES`] names. `others` stands for the others.
    pub(super) fn counted(others: &'static str) -> Self {
        Self {
            max_count: Limits::NAMES,
            others,
            ..Self::default()
        }
    }

    /// Returns how many events have a name that is one of the others.
    pub(super) const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns the number of a name. `about` returns its short form and its location; it is called if the name is new.
    pub(super) fn number(
        &mut self,
        text: &str,
        about: impl FnOnce() -> (String, Option<String>),
    ) -> Result<u32, InputError> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        let is_beyond = self.all.len() >= self.max_count;
        self.beyond += u64::from(is_beyond);
        if is_beyond && let Some(number) = self.numbers.get(self.others) {
            return Ok(*number);
        }
        let (text, (short, location)) = if is_beyond {
            (self.others, (String::new(), None))
        } else {
            (text, about())
        };
        let text: Arc<str> = text.into();
        let name = SliceName {
            text: Arc::clone(&text),
            short: short.into(),
            location: location.unwrap_or_default().into(),
            ..SliceName::default()
        };
        self.count(name.text.len() + name.short.len() + name.location.len())?;
        let Ok(number) = u32::try_from(self.all.len()) else {
            return Err(self.too_many());
        };
        self.all.push(name);
        self.numbers.insert(text, number);
        Ok(number)
    }

    /// Returns a text that is kept once.
    pub(super) fn shared(&mut self, text: &str) -> Result<Arc<str>, InputError> {
        let number = self.number(text, || (String::new(), None))?;
        let known = self.all.get(number as usize);
        Ok(known.map_or_else(|| text.into(), |name| Arc::clone(&name.text)))
    }

    /// Counts the bytes of another text that stays in memory, such as the name of a track.
    pub(super) fn count(&mut self, bytes: usize) -> Result<(), InputError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.max_bytes {
            return Err(self.too_many());
        }
        Ok(())
    }

    fn too_many(&self) -> InputError {
        InputError::TooManyNames {
            max_bytes: self.max_bytes,
        }
    }

    /// Returns the number of a name, if it has one.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// Returns the text with a number.
    pub(super) fn text(&self, number: u32) -> Option<&str> {
        self.all.get(number as usize).map(|name| &*name.text)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn into_names(self) -> Vec<SliceName> {
        self.all
    }
}

/// Returns the location in `file.py(12): function`, as `file.py:12`. PyTorch names Python functions so, and the frames of
/// call stacks.
pub(super) fn location_in(frame: &str) -> Option<String> {
    let (before, _) = frame.split_once("): ")?;
    let (file, line) = before.rsplit_once('(')?;
    let line: u32 = line.parse().ok()?;
    (!file.is_empty()).then(|| format!("{file}:{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_python_and_rust_have_locations() {
        for (frame, location) in [
            (
                "torch/nn/module.py(1511): _call_impl",
                Some("torch/nn/module.py:1511"),
            ),
            (
                "src/main.rs(3): app::main;b.rs(2): g",
                Some("src/main.rs:3"),
            ),
            ("<built-in method f>", None),
            ("a(b): c", None),
            ("(1): c", None),
            ("std::vec<a(1)>: c", None),
        ] {
            assert_eq!(location_in(frame).as_deref(), location, "{frame}");
        }
    }
}
