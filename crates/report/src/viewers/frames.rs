//! The functions that a file refers to by their numbers.

use std::collections::HashMap;

/// Functions in the order in which they were first needed.
#[derive(Debug, Default)]
pub(super) struct Frames<'t> {
    numbers: HashMap<Frame<'t>, usize>,
    frames: Vec<Frame<'t>>,
}

/// A function: its name and source location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Frame<'t> {
    pub(super) name: &'t str,
    /// `file:line`; empty if it is not known.
    pub(super) location: &'t str,
}

impl<'t> Frames<'t> {
    /// Returns the number of a function; they count from 0.
    pub(super) fn number(&mut self, name: &'t str, location: &'t str) -> usize {
        let frame = Frame { name, location };
        *self.numbers.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            self.frames.len() - 1
        })
    }

    /// Returns all functions by number.
    pub(super) fn all(&self) -> &[Frame<'t>] {
        &self.frames
    }
}

impl<'t> Frame<'t> {
    /// Returns the file and the line, if the location has both.
    pub(super) fn file_and_line(self) -> Option<(&'t str, u32)> {
        let (file, line) = self.location.rsplit_once(':')?;
        Some((file, line.parse().ok()?)).filter(|(file, _)| !file.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_file_and_a_line() {
        let parts = |location| Frame { name: "", location }.file_and_line();
        assert_eq!(parts("src/main.rs:7"), Some(("src/main.rs", 7)));
        assert_eq!(parts("C:\\src\\main.rs:7"), Some(("C:\\src\\main.rs", 7)));
        for incomplete in ["", "main.rs", ":7", "main.rs:", "main.rs:x"] {
            assert_eq!(parts(incomplete), None, "{incomplete}");
        }
    }

    #[test]
    fn functions_are_numbered_once() {
        let mut frames = Frames::default();
        let numbers = [("a", ""), ("b", ""), ("a", ""), ("a", "x:1")]
            .map(|(name, location)| frames.number(name, location));
        assert_eq!(numbers, [0, 1, 0, 2]);
        assert_eq!(frames.all().len(), 3);
    }
}
