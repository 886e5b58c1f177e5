//! Grouping calls into rows.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::group_by::GroupBy;
use crate::row::Row;
use crate::timeline::{Slice, Timeline};
use crate::walk::NONE;

/// The key of a row; shapes and stacks are numbered.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    name: u32,
    shapes: u32,
    stack: u32,
}

/// Assigns the calls of a time line to rows.
pub(super) struct Groups<'t> {
    timeline: &'t Timeline,
    /// The call that each slice is in, and the number of the text of each name.
    callers: &'t [u32],
    texts: &'t [u32],
    by: GroupBy,
    numbers: HashMap<Key, usize>,
    /// The rows, with zero counts.
    rows: Vec<Row>,
    /// For each index of [`Timeline::shapes`], the first one with the same shapes; [`NONE`] if the text is no shapes.
    shapes: Vec<u32>,
    stacks: Stacks<'t>,
}

impl<'t> Groups<'t> {
    pub(super) fn new(
        timeline: &'t Timeline,
        callers: &'t [u32],
        texts: &'t [u32],
        by: GroupBy,
    ) -> Self {
        let mut known: HashMap<Vec<Box<[usize]>>, u32> = HashMap::new();
        let all = (0..).zip(&timeline.shapes).filter(|_| by.shapes);
        let shapes = all.map(|(index, text)| {
            let shapes = shapes_of(text);
            shapes.map_or(NONE, |shapes| *known.entry(shapes).or_insert(index))
        });
        Self {
            timeline,
            callers,
            texts,
            by,
            numbers: HashMap::new(),
            rows: Vec::new(),
            shapes: shapes.collect(),
            stacks: Stacks::default(),
        }
    }

    /// Returns the row of a call, the slice with this index.
    pub(super) fn of_call(&mut self, index: usize) -> usize {
        let slice = &self.timeline.slices[index];
        let shapes = slice.shapes.and_then(|at| self.shapes.get(at as usize));
        let shapes = shapes.copied().unwrap_or(NONE);
        let stack = self.stack_of(Some(index));
        self.row(slice.name, shapes, stack)
    }

    /// Returns the row of a replay, which has no enclosing scope and no shapes.
    pub(super) fn of_replay(&mut self, name: u32) -> usize {
        let stack = self.stack_of(None);
        self.row(name, NONE, stack)
    }

    /// Returns the rows in the order of their numbers.
    pub(super) fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    fn row(&mut self, name: u32, shapes: u32, stack: u32) -> usize {
        let name = self.texts.get(name as usize).copied().unwrap_or(NONE);
        let key = Key {
            name,
            shapes,
            stack,
        };
        let next = self.rows.len();
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            let text = self.timeline.shapes.get(shapes as usize);
            let known = self.timeline.names.get(name as usize);
            self.rows.push(Row {
                name: known.map_or_else(String::new, |name| name.text.to_string()),
                location: known.map_or_else(String::new, |name| name.location.to_string()),
                input_shapes: text.and_then(|text| shapes_of(text)),
                stack: self.stacks.all.get(stack as usize).cloned(),
                ..Row::default()
            });
        }
        number
    }

    /// Returns the number of the scopes around a call, up to the limit: as the call recorded them, or else those of the
    /// time line.
    fn stack_of(&mut self, call: Option<usize>) -> u32 {
        if !self.by.has_stack() {
            return NONE;
        }
        let (mut around, mut recorded) = (Vec::new(), "");
        // Calls inside of one with a long stack share it: its text is looked at once.
        let mut text = NONE;
        let mut next = call;
        while let Some(index) = next.filter(|_| around.len() < self.by.stack) {
            let slice = &self.timeline.slices[index];
            if let Some(stack) = self.recorded_stack(slice) {
                recorded = stack;
                text = self.stacks.number_of(stack);
                break;
            }
            let caller = self.callers.get(index).copied().unwrap_or(NONE);
            next = self.timeline.slices.get(caller as usize).map(|slice| {
                around.push(self.texts.get(slice.name as usize).copied().unwrap_or(NONE));
                caller as usize
            });
        }
        let key = (around, text);
        if let Some(known) = self.stacks.numbers.get(&key) {
            return *known;
        }
        let around = key.0.iter().map(|name| self.frame(*name));
        let recorded = recorded.split(';').filter(|frame| !frame.is_empty());
        let frames = around.chain(recorded.map(str::to_owned));
        let frames: Vec<String> = frames.take(self.by.stack).collect();
        self.stacks.add(key, frames)
    }

    /// Returns the scopes around a slice as it recorded them, without itself.
    fn recorded_stack(&self, slice: &Slice) -> Option<&'t str> {
        let timeline = self.timeline;
        let details = timeline.details.get(slice.details? as usize)?;
        let stack = details.call_stack.as_deref()?;
        // Other profilers leave the call itself out.
        let (innermost, around) = stack.split_once(';').unwrap_or((stack, ""));
        let name = timeline.names.get(slice.name as usize);
        let name = name.map_or(Cow::Borrowed(""), |name| of_stack(&name.text));
        let before = innermost.strip_suffix(&*name);
        let is_own = before.is_some_and(|before| before.is_empty() || before.ends_with("): "));
        Some(if is_own { around } else { stack })
    }

    /// Returns a scope of a stack as `file(line): name`.
    fn frame(&self, name: u32) -> String {
        let Some(name) = self.timeline.names.get(name as usize) else {
            return String::new();
        };
        match name.location.rsplit_once(':') {
            Some((file, line)) => format!("{file}({line}): {}", of_stack(&name.text)),
            None => of_stack(&name.text).into_owned(),
        }
    }
}

/// Returns a name as it stands in a stack, whose frames are separated by `;`.
fn of_stack(name: &str) -> Cow<'_, str> {
    if name.contains(';') {
        Cow::Owned(name.replace(';', ","))
    } else {
        Cow::Borrowed(name)
    }
}

/// Stacks by number. Each distinct one has one.
#[derive(Default)]
struct Stacks<'t> {
    all: Vec<Vec<String>>,
    by_frames: HashMap<Vec<String>, u32>,
    /// By the names of enclosing calls, and the text that the last one of them recorded.
    numbers: HashMap<(Vec<u32>, u32), u32>,
    /// The numbers of recorded texts: by what they say, and by where they lie.
    texts: HashMap<&'t str, u32>,
    known_texts: HashMap<(*const u8, usize), u32>,
}

impl<'t> Stacks<'t> {
    /// Returns the number of a recorded text.
    fn number_of(&mut self, text: &'t str) -> u32 {
        let place = (text.as_ptr(), text.len());
        *self.known_texts.entry(place).or_insert_with(|| {
            let next = u32::try_from(self.texts.len()).unwrap_or(NONE);
            *self.texts.entry(text).or_insert(next)
        })
    }

    fn add(&mut self, key: (Vec<u32>, u32), frames: Vec<String>) -> u32 {
        let next = u32::try_from(self.all.len()).unwrap_or(NONE);
        let number = *self.by_frames.entry(frames.clone()).or_insert(next);
        if number == next {
            self.all.push(frames);
        }
        self.numbers.insert(key, number);
        number
    }
}

/// Returns the shapes that a text such as `[[32, 64], []]` stands for. `None` for a text of another form, as those of lists
/// of tensors are in files of PyTorch.
fn shapes_of(text: &str) -> Option<Vec<Box<[usize]>>> {
    let list = |text: &str| -> Option<Box<[usize]>> {
        if text.trim().is_empty() {
            return Some(Box::default());
        }
        let extents = text.split(',').map(|extent| extent.trim().parse().ok());
        extents.collect()
    };
    let mut rest = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    let mut shapes = Vec::new();
    while !rest.is_empty() {
        let (shape, after) = rest.strip_prefix('[')?.split_once(']')?;
        shapes.push(list(shape)?);
        rest = after.trim_start();
        if let Some(after) = rest.strip_prefix(',') {
            rest = after.trim_start();
        } else if !rest.is_empty() {
            return None;
        }
    }
    Some(shapes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{SliceDetails, SliceKind, SliceName};

    #[test]
    fn shapes_are_read_from_their_texts() {
        let read = |text: &str| shapes_of(text).map(|shapes| format!("{shapes:?}"));
        for text in ["[]", "[[]]", "[[2, 3], [7]]", "[[], [1]]"] {
            assert_eq!(read(text).as_deref(), Some(text));
        }
        assert_eq!(read("[[2,3],[7]]").as_deref(), Some("[[2, 3], [7]]"));
        for text in ["", "[", "2", "[2]", "[[2] [3]]", "[[[2]], [3]]", "[[-1]]"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    /// `outer` calls `inner`, which launches a kernel.
    fn timeline() -> Timeline {
        let name = |text: &str, location: &str| SliceName {
            text: text.into(),
            location: location.into(),
            ..SliceName::default()
        };
        let slice = |name, kind, parent| Slice {
            name,
            kind,
            parent,
            duration_ns: 10,
            self_ns: 10,
            ..Slice::default()
        };
        Timeline {
            names: vec![
                name("outer", "a.rs:1"),
                name("inner", "b.rs:2"),
                name("kernel", ""),
            ],
            slices: vec![
                slice(0, SliceKind::Call, None),
                slice(1, SliceKind::Call, Some(0)),
                slice(2, SliceKind::GpuWork, Some(1)),
            ],
            ..Timeline::default()
        }
    }

    fn stack(timeline: &Timeline, name: &str) -> String {
        let averages = timeline.key_averages_by(GroupBy::new().group_by_stack(9));
        let row = averages.row(name).expect("a row");
        row.stack.clone().expect("a stack").join("|")
    }

    #[test]
    fn the_stack_is_as_it_was_recorded_or_else_as_the_time_line_has_it() {
        let mut timeline = timeline();
        assert_eq!(stack(&timeline, "outer"), "");
        assert_eq!(stack(&timeline, "kernel"), "b.rs(2): inner|a.rs(1): outer");
        let recorded = |stack: &str| SliceDetails {
            call_stack: Some(stack.into()),
            ..SliceDetails::default()
        };
        timeline.details = vec![
            recorded("a.rs(1): outer;m.rs(3): main"),
            recorded("other.py(5): forward;m.py(3): main"),
        ];
        timeline.slices[0].details = Some(0);
        assert_eq!(stack(&timeline, "outer"), "m.rs(3): main");
        assert_eq!(stack(&timeline, "inner"), "a.rs(1): outer|m.rs(3): main");
        timeline.slices[1].details = Some(1);
        assert_eq!(
            stack(&timeline, "inner"),
            "other.py(5): forward|m.py(3): main"
        );
    }
}
