//! Grouping calls into rows.

use std::collections::HashMap;

use super::GroupBy;
use super::interner::{Interner, to_number};
use crate::report::row::Row;
use crate::session::{NONE, Trace};

/// The key of a row; shapes and stacks are interned.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    name: u32,
    shapes: u32,
    stack: u32,
}

type ShapeList = [Box<[usize]>];

/// Assigns the scopes of a trace to rows.
pub(super) struct Groups<'t> {
    trace: &'t Trace,
    by: GroupBy,
    /// The row of each name, used if rows are grouped by name only.
    by_name: Vec<u32>,
    by_key: HashMap<Key, u32>,
    keys: Vec<Key>,
    shapes: Interner<&'t ShapeList>,
    stacks: Interner<Vec<u32>>,
    stack: Vec<u32>,
}

impl<'t> Groups<'t> {
    pub(super) fn new(trace: &'t Trace, by: GroupBy) -> Self {
        Self {
            trace,
            by,
            by_name: vec![NONE; trace.names.len()],
            by_key: HashMap::new(),
            keys: Vec::new(),
            shapes: Interner::new(),
            stacks: Interner::new(),
            stack: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the row of a scope.
    pub(super) fn of_scope(&mut self, index: usize, parents: &[u32]) -> u32 {
        let key = Key {
            name: self.trace.scopes[index].name,
            shapes: if self.by.shapes {
                self.shapes_of(index)
            } else {
                NONE
            },
            stack: if self.by.has_stack() {
                self.stack_of(index, parents)
            } else {
                NONE
            },
        };
        self.of_key(key)
    }

    /// Returns the row of a replay, which has no enclosing scope and no shapes.
    pub(super) fn of_replay(&mut self, name: u32) -> u32 {
        self.stack.clear();
        let key = Key {
            name,
            shapes: NONE,
            stack: if self.by.has_stack() {
                self.stack_number()
            } else {
                NONE
            },
        };
        self.of_key(key)
    }

    fn of_key(&mut self, key: Key) -> u32 {
        let is_plain = key.shapes == NONE && key.stack == NONE;
        let known = if is_plain {
            self.by_name.get(key.name as usize).copied()
        } else {
            self.by_key.get(&key).copied()
        };
        if let Some(known) = known.filter(|known| *known != NONE) {
            return known;
        }
        let number = to_number(self.keys.len());
        self.keys.push(key);
        match self.by_name.get_mut(key.name as usize).filter(|_| is_plain) {
            Some(slot) => *slot = number,
            None => {
                self.by_key.insert(key, number);
            }
        }
        number
    }

    fn shapes_of(&mut self, index: usize) -> u32 {
        let extra = self.trace.scopes[index].extra.as_deref();
        let extra = extra.filter(|_| self.trace.meta.options.record_shapes);
        let Some(shapes) = extra.and_then(|extra| extra.shapes.as_deref()) else {
            return NONE;
        };
        self.shapes.number(shapes, || shapes)
    }

    /// Returns the enclosing scopes of a scope, up to the limit: as the scope recorded them, or else from the window.
    fn stack_of(&mut self, index: usize, parents: &[u32]) -> u32 {
        let scopes = &self.trace.scopes;
        let extra = scopes[index].extra.as_deref();
        let extra = extra.filter(|_| self.trace.meta.options.with_stack);
        self.stack.clear();
        if let Some(around) = extra.and_then(|extra| extra.around.as_deref()) {
            self.stack.extend(around.iter().rev().take(self.by.stack));
            return self.stack_number();
        }
        let mut parent = parents[index];
        while self.stack.len() < self.by.stack
            && let Some(around) = scopes.get(parent as usize)
        {
            self.stack.push(around.name);
            parent = parents[parent as usize];
        }
        self.stack_number()
    }

    fn stack_number(&mut self) -> u32 {
        let stack = &self.stack;
        self.stacks.number(stack.as_slice(), || stack.clone())
    }

    /// Creates a row with zero counts.
    pub(super) fn row(&self, group: usize) -> Row {
        let Some(key) = self.keys.get(group) else {
            return Row::default();
        };
        let name = self.trace.names.get(key.name as usize);
        let location = name.map(|name| name.location);
        let shapes = self.shapes.get(key.shapes);
        let stack = self.stacks.get(key.stack);
        let frames = |stack: &Vec<u32>| stack.iter().map(|name| self.frame(*name)).collect();
        Row {
            name: self.trace.name_of(key.name).to_owned(),
            tag: name.map_or_else(String::new, |name| name.tag.clone()),
            location: location.map_or_else(String::new, |location| {
                format!("{}:{}", location.file(), location.line())
            }),
            input_shapes: shapes.map(|shapes| shapes.to_vec()),
            stack: stack.map(frames),
            ..Row::default()
        }
    }

    fn frame(&self, name: u32) -> String {
        let text = self.trace.name_of(name);
        let name = self.trace.names.get(name as usize);
        name.map_or_else(
            || text.to_owned(),
            |name| format!("{}({}): {text}", name.location.file(), name.location.line()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::sample::Sample;
    use crate::session::{Options, ScopeDetails};

    fn shapes(shapes: &[&[usize]]) -> ScopeDetails {
        ScopeDetails {
            shapes: Some(shapes.iter().map(|shape| (*shape).into()).collect()),
            ..ScopeDetails::default()
        }
    }

    fn calls(trace: &Trace, by: GroupBy) -> Vec<(String, String, u64)> {
        let rows = trace.key_averages_by(by).rows;
        let mut calls: Vec<_> = rows
            .iter()
            .map(|row| (row.name.clone(), row.shapes_text(), row.calls))
            .collect();
        calls.sort();
        calls
    }

    fn shaped() -> Sample {
        let mut sample = Sample::new();
        for extents in [&[2_usize, 3][..], &[4], &[2, 3]] {
            sample.scope("group: shaped", 0, 0, 10);
            sample.extra(shapes(&[extents, &[7]]));
        }
        sample.scope("group: shaped", 0, 0, 10);
        sample
    }

    #[test]
    fn calls_are_told_apart_by_their_shapes() {
        let by = GroupBy::new().group_by_input_shape(true);
        let row = |shapes: &str, calls| ("group: shaped".to_owned(), shapes.to_owned(), calls);
        assert_eq!(
            calls(&shaped().trace(), by),
            [row("", 1), row("[[2, 3], [7]]", 2), row("[[4], [7]]", 1)]
        );
        assert_eq!(calls(&shaped().trace(), GroupBy::new()), [row("", 4)]);
    }

    #[test]
    fn shapes_count_only_where_the_session_records_them() {
        let mut sample = shaped();
        sample.options = Options::DEFAULT;
        let by = GroupBy::new().group_by_input_shape(true);
        assert_eq!(calls(&sample.trace(), by).len(), 1);
    }

    #[test]
    fn calls_are_told_apart_by_the_scopes_around_them() {
        let mut sample = Sample::new();
        for root in ["group: a", "group: b"] {
            let root = sample.scope(root, 0, 0, 100);
            let middle = sample.scope("group: middle", root, 10, 50);
            sample.scope("group: leaf", middle, 20, 5);
        }
        let trace = sample.trace();
        let leaves = |scopes: usize| {
            let by = GroupBy::new().group_by_stack(scopes);
            let rows = trace.key_averages_by(by).rows;
            let mut stacks: Vec<Vec<String>> = rows
                .into_iter()
                .filter(|row| row.name == "group: leaf")
                .filter_map(|row| row.stack)
                .collect();
            stacks.sort();
            stacks
        };
        assert_eq!(leaves(0).len(), 0, "no stacks unless they are asked for");
        let [one] = &leaves(1)[..] else {
            panic!("both are in a middle")
        };
        assert!(
            one[0].ends_with("): group: middle") && one[0].contains("group.rs("),
            "{one:?}"
        );
        let [in_a, in_b] = &leaves(2)[..] else {
            panic!("one in each root")
        };
        assert!(in_a[1].ends_with("): group: a") && in_b[1].ends_with("): group: b"));
        assert_eq!(leaves(9), leaves(2));
    }

    #[test]
    fn scopes_that_are_not_in_the_window_are_part_of_the_stack() {
        let mut sample = Sample::new();
        sample.scope("group: main", 0, 0, 1);
        let main = sample.last().name;
        sample.scope("group: within", 0, 5, 50);
        sample.extra(ScopeDetails {
            around: Some([main].into()),
            ..ScopeDetails::default()
        });
        let by = GroupBy::new().group_by_stack(2);
        let rows = sample.trace().key_averages_by(by).rows;
        let row = rows.iter().find(|row| row.name == "group: within");
        let stack = row.and_then(|row| row.stack.clone()).expect("a stack");
        assert!(
            stack.len() == 1 && stack[0].ends_with(": group: main"),
            "{stack:?}"
        );
    }
}
